internal import Spool
internal import SystemPackage

/// Reads the directories that contain jobs in pieces, so that the first jobs start before the rest is read.
struct SpoolReader {
  /// What a name in a directory is.
  enum Sighting {
    case candidate(Candidate)
    /// It is another worker's, at least until this second since the epoch.
    case held(Candidate, until: Int64)
    /// It is due at this time, in seconds since the epoch.
    case later(Int64)
    /// It is gone, or not a job.
    case nothing
  }

  private let spool: Spool
  private var streams: [Directory: DirectoryStream] = [:]

  init(_ spool: Spool) { self.spool = spool }

  mutating func begin(_ directory: Directory) throws(SpoolError) { streams[directory] = try spool.stream(directory) }

  mutating func abandon() { streams = [:] }

  /// - Returns: nil at the directory's end.
  mutating func next(_ directory: Directory) throws(SpoolError) -> FileName? {
    while let name = try streams[directory]?.next() {
      if !name.isIgnored { return name }
    }
    streams[directory] = nil
    return nil
  }

  func look(_ directory: Directory, _ name: FileName, at now: Timestamp) throws(SpoolError) -> Sighting {
    if directory == .partial, name.isData { return .nothing }
    let found: FileStatus?
    do throws(SpoolError) {
      found = try spool.status(directory, name)
    } catch  where error.errno == .permissionDenied && directory.takesDrops {
      // Only the file's status is denied, since the directory could be read. The claim reports it.
      return .candidate(Candidate(name: name, origin: directory, modified: 0))
    }
    guard let status = found else { return .nothing }
    if try !spool.isDue(name, modified: status.modified, in: directory, at: now.seconds) {
      return .later(status.modified)
    }
    // An order that is due takes little, and would otherwise wait behind each older job. A time in the future would put
    // the job after all jobs dropped until then.
    let modified = directory == .standing ? 0 : min(status.modified, now.seconds)
    // What has begun goes on before others begin.
    let delay = directory == .cur ? -modified : directory == .new || directory == .partial ? delay(of: name) : 0
    let candidate = Candidate(
      name: name, origin: directory, modified: modified, delay: delay,
      nanoseconds: modified == status.modified ? status.modifiedNanoseconds : 0)
    // Not even opened: on a network file system that would take several round trips, for each claim in each pass.
    if directory == .cur, let end = spool.endOfLease(of: name, status, now: now) {
      return .held(candidate, until: end)
    }
    return .candidate(candidate)
  }

  /// Where other hosts may share the spool, each worker has an order of its own for jobs of about the same age, so that
  /// they do not race for the same ones.
  private func delay(of name: FileName) -> Int64 {
    if spool.kind.isLocal { return 0 }
    // FNV-1a.
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in Array(spool.owner.text.utf8) + name.bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return Int64(hash >> 32) % Self.spread
  }

  /// Seconds.
  static let spread: Int64 = 30
}
