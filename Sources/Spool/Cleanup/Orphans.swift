internal import Glibc
internal import SystemPackage

extension Spool {
  /// Removes data whose job is gone, unless somebody has its lock.
  /// - Parameters:
  ///   - path: `partial/NAME.part`, or the data set aside as `failed/NAME.part`.
  ///   - isDry: only says whether it would.
  /// - Returns: the bytes that were in it; nil when it stays.
  func removeOrphan(_ path: Path, of job: FileName, isDry: Bool = false) throws(SpoolError) -> Int64? {
    try withIdleData(path) { (status) throws(SpoolError) in
      // First the lock, then the look: who claims a job of this name from now on finds the data locked, and takes another name.
      if try isJobPresent(job) { return nil }
      if !isDry { try system.unlink(root, path) }
      return status.size
    }
  }

  /// Removes the data of a job that is in the caller's hands but not open there. What another worker has locked stays: while there was no data, its job may
  /// have got the same name.
  package func removeData(of job: JobName) throws(SpoolError) {
    let path = Path(.partial, job.part)
    _ = try withIdleData(path) { (_) throws(SpoolError) in try system.unlink(root, path) }
  }

  /// Does `body` to data while nobody else can; nil where there is none, or where somebody has it.
  func withIdleData<Result>(_ path: Path, _ body: (FileStatus) throws(SpoolError) -> Result?) throws(SpoolError)
    -> Result?
  {
    do throws(SpoolError) {
      guard try system.status(root, path).isRegular else { return nil }
      let descriptor = try system.open(root, path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
      defer { System.release(descriptor) }
      guard try system.lock(descriptor, path) else { return nil }
      let status = try system.status(descriptor, path: path)
      guard try system.status(root, path).isSameFile(as: status) else { return nil }
      return try body(status)
    } catch  where error.errno == .noSuchFileOrDirectory {
      return nil
    }
  }

  /// Removes the data of a cancelled job, unless somebody works on it or another job has its name.
  package func removeOrphanedData(of job: JobName) throws(SpoolError) {
    _ = try removeOrphan(Path(.partial, job.part), of: job.fileName)
    _ = try removeOrphan(Path(.failed, job.part), of: job.fileName)
  }

  /// The entries of `failed/` that are no jobs of their own: data set aside, and records of what else stands there.
  func leftovers(in names: [FileName]) throws(SpoolError) -> Set<FileName> {
    let all = Set(names)
    var found: Set<FileName> = []
    for name in names {
      // Something was dropped as `x.part`: that is no job's name, so it has a record.
      if name.isData, !all.contains(name.record) { found.insert(name) }
      if try isRecord(name) { found.insert(name) }
    }
    return found
  }

  /// Whether `name` in `failed/` is the record of something that is no job: of its name, and of one `failed:` line alone. A job may be called so, too.
  func isRecord(_ name: FileName) throws(SpoolError) -> Bool {
    guard name.hasRecordSuffix, let bytes = try contents(Path(.failed, name), limit: JobText.maximumRequest) else {
      return false
    }
    let text = bytes.withUnsafeBytes { JobText($0) }
    return bytes.starts(with: Array("failed: ".utf8)) && text.request.urls.isEmpty
      && bytes.filter { $0 == 0x0A }.count == 1
  }
}

extension FileName {
  /// One name in a directory: not empty, without a slash, and neither `.` nor `..`.
  package var isEntry: Bool { !bytes.isEmpty && !bytes.contains(0x2F) && bytes != [0x2E] && bytes != [0x2E, 0x2E] }

  package static let recordSuffix = Array(".record".utf8)
  private static let dataSuffix = Array(".part".utf8)

  /// Ends in `.part`: a job's data.
  package var isData: Bool { bytes.suffix(Self.dataSuffix.count) == Self.dataSuffix[...] }

  /// Without `.part`.
  var dataOwner: FileName { FileName(Array(bytes.dropLast(Self.dataSuffix.count))) }

  /// Without `.record`; shorter than the name was, if that was too long for the suffix.
  var recordSubject: FileName { FileName(Array(bytes.dropLast(Self.recordSuffix.count))) }

  var hasRecordSuffix: Bool {
    bytes.count > Self.recordSuffix.count && bytes.suffix(Self.recordSuffix.count) == Self.recordSuffix[...]
  }

  /// Its record's name was cut, and does not tell it.
  var hasLongRecord: Bool { bytes.count > 255 - Self.recordSuffix.count }

  /// The record that stands in `failed/` beside what is no job of this name.
  package var record: FileName { FileName(Array(bytes.prefix(255 - Self.recordSuffix.count)) + Self.recordSuffix) }
}
