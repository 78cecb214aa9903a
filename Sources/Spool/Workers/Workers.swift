internal import Glibc
internal import Synchronization
internal import SystemPackage

/// This worker's file in `workers/`: locked, and touched with each heartbeat. It holds no state of a job; if a person
/// removes it, it is made again.
package final class Presence {
  private let spool: Spool
  private let file: SharedFile
  private let identity: FileStatus
  private var written: [UInt8] = []

  /// Makes the file.
  /// - Throws: ``SpoolError``, EAGAIN if somebody examines it at this moment; try again later.
  package init(of spool: Spool, _ report: WorkerReport) throws(SpoolError) {
    self.spool = spool
    try spool.provide(Path(.workers))
    let path = Path(.workers, FileName(spool.owner.text))
    var file = try spool.system.create(spool.root, path, O_RDWR | Spool.jobFlags, mode: 0o644)
    guard try file.lock() else {
      throw SpoolError(call: .lock, path: path.display, errno: .resourceTemporarilyUnavailable)
    }
    identity = try file.status()
    self.file = file.shared()
    try write(Array(report.text.utf8))
  }

  /// Gives a sign of life, and says what is new.
  /// - Returns: false if the file is gone, and has to be made again.
  package func beat(_ report: WorkerReport) throws(SpoolError) -> Bool {
    guard try isInPlace() else { return false }
    let bytes = Array(report.text.utf8)
    if bytes == written { try spool.touch(file) } else { try write(bytes) }
    return true
  }

  package func end() throws(SpoolError) {
    if try isInPlace() { try spool.system.unlink(spool.root, file.path) }
    try file.close()
  }

  private func isInPlace() throws(SpoolError) -> Bool {
    try orNil(spool.system.status(spool.root, file.path), where: \.isGone)?.isSameFile(as: identity) ?? false
  }

  /// A reader may see some of the old lines behind the new ones for a moment.
  private func write(_ bytes: [UInt8]) throws(SpoolError) {
    try file.write(bytes, at: 0)
    try file.truncate(to: Int64(bytes.count))
    written = bytes
  }
}

package struct WorkerFiles {
  private let spool: Spool

  package init(_ spool: Spool) { self.spool = spool }

  package struct Seen: Sendable {
    package let owner: WorkerName
    /// Its last heartbeat, in seconds since the epoch, by the file system's clock.
    package let beat: Int64
    /// nil if it cannot be read, or the worker is about to write it.
    package let report: WorkerReport?
  }

  private static let maximumReport = 1 << 16

  /// The workers that have a file in `workers/`, also those that have died since.
  package func all() throws(SpoolError) -> [Seen] {
    var found: [Seen] = []
    for name in try spool.list(.workers) {
      guard let owner = WorkerName(name.bytes), owner.isClean, let status = try spool.status(.workers, name),
        status.isRegular
      else { continue }
      // Another user's file may be closed to this one.
      let bytes = (try? spool.contents(Path(.workers, name), limit: Self.maximumReport)) ?? []
      found.append(Seen(owner: owner, beat: status.modified, report: WorkerReport(bytes)))
    }
    return found.sorted { $0.owner < $1.owner }
  }

  package func living() throws(SpoolError) -> [Seen] {
    let (leases, now) = (Leases(spool), spool.now())
    return try all().filter { leases.isAlive($0.owner, beat: $0.beat, now: now) }
  }

  /// A living worker of version 0.2, which would give a job up for a key that it does not know. A user who may not look
  /// at the workers may drop all.
  func objector() throws(SpoolError) -> WorkerName? {
    try orNil(living().first { $0.report?.lacksNewKeys == true }?.owner, on: .permissionDenied)
  }

  private static let newKeys = Set((JobKey.all + JobKey.ofOrders).filter(\.isNew).map(\.name))

  /// - Throws: ``SpoolError``, ENOTSUP where the text has a key that the worker does not know.
  static func refuse(_ text: [UInt8], as name: JobName, for worker: WorkerName) throws(SpoolError) {
    let isNew = text.withUnsafeBytes {
      JobLines($0).contains { $0.sets(newKeys) } || JobText($0).request.standing.entries == .file
    }
    if !isNew { return }
    throw SpoolError(
      call: .create, path: name.display, errno: .notSupported,
      reason: "the worker \(escaped(worker.text)) of version 0.2 would give the job up for a new key: replace it first")
  }

  /// Removes the files of workers that have ended: their lock is free, and it proves that, or their lease is over.
  package func sweep() throws(SpoolError) {
    for name in try spool.list(.workers) {
      guard let owner = WorkerName(name.bytes), owner.isClean, owner.text != spool.owner.text,
        let status = try spool.status(.workers, name), status.isRegular,
        Leases(spool).sharesLocks(with: owner) || Leases(spool).isOver(since: status.modified, now: spool.now())
      else { continue }
      try sweep(Path(.workers, name))
    }
  }

  private func sweep(_ path: Path) throws(SpoolError) {
    do throws(SpoolError) {
      var file = try spool.system.open(spool.root, path, O_RDWR | Spool.jobFlags)
      guard try file.lock(), try spool.system.status(spool.root, path).isSameFile(as: file.status()) else { return }
      try spool.system.unlink(spool.root, path)
    } catch  where error.isGone || error.errno == .permissionDenied || error.errno == .notPermitted {
      // Another worker was faster, or it is another user's.
    }
  }
}

extension Leases {
  /// Agrees with the other workers of the spool on the lease: the first one writes it down.
  ///
  /// Where all workers run under one kernel, it is only written if somebody asks for one. So there those that live and
  /// have written none have the standard one.
  /// - Parameter wanted: in seconds; nil for that of the others.
  /// - Throws: ``Defect`` if the others have another one; ``SpoolError``.
  package func agree(on wanted: Int64?) throws {
    var noted = try spool.readLease()
    if noted == nil, try !spool.kind.isLocal || wanted != nil && !doesAnyLive() {
      try write(wanted ?? Spool.standardLease)
      noted = try spool.readLease()
    }
    let lease = noted ?? Spool.standardLease
    if let wanted, wanted != lease {
      throw Defect(
        line: nil,
        reason: noted == nil
          ? "a worker with the usual lease of \(lease) s runs: stop it first, or leave --lease out"
          : "its workers have agreed on a lease of \(lease) s: use --lease \(lease)s, or stop all of its workers on all"
            + " hosts, remove its file lease, and start them with another")
    }
    spool.agreedLease.store(lease, ordering: .relaxed)
  }

  private func doesAnyLive() throws(SpoolError) -> Bool {
    // The files of those that were killed look like those of workers of other containers.
    try WorkerFiles(spool).sweep()
    return try !WorkerFiles(spool).living().isEmpty
  }

  private func write(_ seconds: Int64) throws(SpoolError) {
    try orNil(
      spool.write(Array("\(seconds)\n".utf8), to: Spool.leasePath, isFlushed: true, replaces: false), on: .fileExists)
  }
}

/// What a worker says of itself, in its file in `workers/` (spool.5, WORKERS). It is for people and for `status`; no
/// job depends on it.
package struct WorkerReport: Sendable, Equatable {
  /// Why jobs that could run wait.
  package struct Wait: Sendable, Equatable {
    /// `gate`, `space`, `output`, `proxy`, `server` or `network`.
    package let cause: String
    /// For a person.
    package let reason: String

    package init(_ cause: String, _ reason: String) { (self.cause, self.reason) = (cause, reason) }
  }

  /// When it started, by its host's clock.
  package var started: Timestamp
  package var program: String?
  /// `once` or `watch`.
  package var mode: String?
  package var options = Fields()
  package var runs = 0
  /// Empty if no job waits for anything but its time.
  package var waits: [Wait] = []
  package var claims = 0
  /// How often it tried to claim a job at the same time as another worker, and that one was faster.
  package var lost = 0
  /// How often a job that it had found was no longer there when it tried: others had done it, or a person had moved it.
  package var missed = 0

  package init(started: Timestamp) { self.started = started }

  /// Whether its version is before 0.3, which has keys that older ones do not know.
  var lacksNewKeys: Bool {
    guard let program, program.begins(with: "spoolrun/") else { return false }
    let numbers = program.dropFirstBytes("spoolrun/".utf8.count).split(at: ".").prefix(2).map { decimal($0) }
    guard numbers.count == 2, let major = numbers[0], let minor = numbers[1] else { return false }
    return (major, minor) < (0, 3)
  }

  package var text: String {
    var lines = [
      ("started", Fields("\(started)").with("program", program).with("mode", mode)), ("options", options),
      ("runs", Fields("\(runs)")),
    ]
    for wait in waits { lines.append(("waits", Fields(wait.cause).with("reason", wait.reason))) }
    lines.append(("claims", Fields("\(claims)").with("lost", lost).with("missed", missed)))
    return lines.map { "\($0): \($1.text)\n" }.joined()
  }

  /// Reads the content of such a file. Lines that are not known, or not complete, are skipped.
  /// - Returns: nil if it does not say when the worker started.
  package init?(_ bytes: [UInt8]) {
    guard let end = bytes.lastIndex(of: 0x0A) else { return nil }
    self.init(started: Timestamp(seconds: 0))
    var isStarted = false
    for (key, fields) in Fields.lines(of: String(decoding: bytes[..<end], as: UTF8.self)) {
      guard let fields else { continue }
      let word = fields.words.first
      switch key {
      case "started":
        guard let time = fields.time else { continue }
        (started, isStarted) = (time, true)
        (program, mode) = (fields["program"], fields["mode"])
      case "options": options = fields
      case "runs": runs = Self.count(word)
      case "waits": if let word { waits.append(Wait(word, fields["reason"] ?? "")) }
      case "claims":
        (claims, lost, missed) = (Self.count(word), Self.count(fields["lost"]), Self.count(fields["missed"]))
      default: break
      }
    }
    if !isStarted { return nil }
  }

  private static func count(_ text: String?) -> Int { Int(Int32(clamping: text.flatMap { decimal($0) } ?? 0)) }
}

extension WorkerID {
  /// This process as a worker of this host.
  /// - Parameter host: what claims name this host by; nil for its own name.
  package static func current(host: String? = nil) -> (owner: WorkerID, boot: String) {
    (
      WorkerID(
        host: host ?? hostName(), process: getpid(), tag: UInt32(truncatingIfNeeded: Host.current.random()),
        namespace: processNamespace()), bootID()
    )
  }

  private static func hostName() -> String {
    var host = [CChar](repeating: 0, count: 256)
    guard gethostname(&host, host.count - 1) == 0 else { return "localhost" }
    return String(decoding: host.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  private static func processNamespace() -> String? {
    (try? System().readLink(AT_FDCWD, Path("/proc/self/ns/pid"))).map { String(decoding: $0, as: UTF8.self) }
  }

  private static func bootID() -> String {
    // Where there is no /proc, "unknown" counts as another boot each time.
    let id = try? System().open(AT_FDCWD, Path("/proc/sys/kernel/random/boot_id"), O_RDONLY).read(first: 36)
    guard let id, id.count == 36 else { return "unknown" }
    return String(decoding: id, as: UTF8.self)
  }
}
