/// A job's name: its file name, which carries no meaning.
package struct JobName: Hashable, Sendable {
  /// So that `NAME:HOST.PID.TAG` fits a directory entry of 255 bytes.
  package static let maximumLength = 180

  /// The name of the job's file.
  package let fileName: FileName

  /// Why `name` cannot name a job; nil when it can.
  package static func defect(of name: FileName) -> String? {
    let bytes = name.bytes
    if bytes.isEmpty { return "an empty name" }
    if bytes.count > maximumLength {
      return "its name has \(bytes.count) bytes, more than \(maximumLength)"
    }
    if bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) { return "its name contains control bytes" }
    if bytes.contains(0x2F) { return "its name contains a slash" }
    if name.isData { return "its name ends in .part, which is a job's data" }
    return nil
  }

  /// nil for what ``defect(of:)`` names, and for names with a leading dot, which every reader ignores.
  package init?(_ name: FileName) {
    guard Self.defect(of: name) == nil, name.bytes.first != 0x2E else { return nil }
    fileName = name
  }

  /// For terminals, logs and records: ``escaped(_:)``.
  package var display: String { fileName.display }

  /// `NAME.part`, the data of the job.
  package var part: FileName { fileName.data }

  /// The name for the `number`-th job of one name: `NAME~2`; see ``FileName/numbered(_:limit:)``.
  package func numbered(_ number: Int) -> JobName {
    // A stem cut in the middle keeps no dot in front and no .part behind: the suffix ends it.
    JobName(unchecked: fileName.numbered(number, limit: Self.maximumLength))
  }

  /// Whether `name` is what ``numbered(_:)`` gives for some number, or what it gave in 0.1, which added a second
  /// number: `NAME~2~2`.
  func isNumbered(as name: FileName) -> Bool {
    guard let number = name.numbering?.number else { return false }
    return numbered(number).fileName == name
      || fileName.suffixed("~\(number)", limit: Self.maximumLength) == name
  }

  init(unchecked name: FileName) { fileName = name }
}

/// A file name in `cur/`: the job's and its owner's.
package struct ClaimName: Sendable {
  /// The claimed job.
  package let job: JobName
  /// nil if the name has no owner's suffix, because a person put the file there.
  package let owner: WorkerName?

  /// Splits at the last colon, because a job's name may contain colons; nil for names that are ignored or not a job's.
  package init?(_ name: FileName) {
    let bytes = name.bytes
    if let colon = bytes.lastIndex(of: 0x3A), let job = JobName(FileName(Array(bytes[..<colon]))),
      let owner = WorkerName(bytes[(colon + 1)...])
    {
      (self.job, self.owner) = (job, owner)
      return
    }
    guard let job = JobName(name) else { return nil }
    (self.job, owner) = (job, nil)
  }

  /// `NAME:HOST.PID.TAG`.
  package static func fileName(_ job: JobName, _ owner: WorkerID) -> FileName {
    FileName(job.fileName.bytes + [0x3A] + Array(owner.text.utf8))
  }
}
