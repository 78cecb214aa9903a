/// The directories of a spool (spool.5), in the order in which `spoolrun init` makes them.
package enum Directory: String, CaseIterable, Sendable {
  case tmp, new, urgent, cur, partial, done, failed, hold, standing, workers, files

  /// Those that jobs pass through, and that of standing orders.
  package static let ofJobs: [Directory] = [.new, .urgent, .cur, .partial, .hold, .failed, .done, .standing]

  package var takesNewJobs: Bool { self == .new || self == .urgent }

  /// Whether people and other programs write files into it, so that one may be half written.
  package var takesDrops: Bool { takesNewJobs || self == .standing }

  /// Whether what is in it is tried again at a time of its own.
  var isScheduled: Bool { self == .partial || self == .standing }

  /// Whether a spool may lack it, as those of version 0.1 do. It is made when it is needed.
  package var isOptional: Bool { self == .urgent || self == .standing || self == .workers }
}

/// A directory entry's name: bytes from strangers, any but `/` and NUL (path_resolution(7)).
package struct FileName: Hashable, Comparable, Sendable {
  /// Bytes that a name may have (NAME_MAX, limits.h).
  package static let maximumLength = 255

  /// As the directory has them, of any encoding or none.
  package let bytes: [UInt8]

  /// - Parameter bytes: without `/` and NUL; nothing checks that.
  package init(_ bytes: [UInt8]) { self.bytes = bytes }
  package init(_ string: String) { bytes = Array(string.utf8) }

  package static func < (one: FileName, other: FileName) -> Bool { one.bytes.lexicographicallyPrecedes(other.bytes) }

  /// A leading dot: every reader of a spool ignores it, as in a maildir.
  package var isIgnored: Bool { bytes.first == 0x2E }

  /// The name without the number that ``numbered(_:limit:)`` adds, and the number; nil where the name ends in none.
  var numbering: (stem: FileName, number: Int)? {
    guard let mark = bytes.lastIndex(of: UInt8(ascii: "~")), mark > 0 else { return nil }
    let digits = bytes[(mark + 1)...]
    guard (1...9).contains(digits.count), digits.first != UInt8(ascii: "0"),
      let number = decimal(String(decoding: digits, as: UTF8.self)), number >= 2
    else { return nil }
    return (FileName(Array(bytes[..<mark])), Int(number))
  }

  /// `NAME~2` for the second of this name. A number that the name ends in is replaced, also one that was part of it
  /// from the start: `NAME~3`, and not `NAME~2~2`.
  /// - Parameter limit: bytes that it may have; a longer name is cut before the number.
  package func numbered(_ number: Int, limit: Int) -> FileName {
    (numbering?.stem ?? self).suffixed("~\(number)", limit: limit)
  }

  func suffixed(_ suffix: String, limit: Int) -> FileName {
    var length = min(bytes.count, max(0, limit - suffix.utf8.count))
    if length < bytes.count {
      // No part of a character of UTF-8, which has at most four bytes.
      let least = max(0, length - 3)
      while length > least, bytes[length] & 0xC0 == 0x80 { length -= 1 }
    }
    return FileName(Array(bytes[..<length]) + Array(suffix.utf8))
  }

  package var display: String { escaped(bytes) }

  /// One name in a directory: not empty, without a slash, and neither `.` nor `..`.
  package var isEntry: Bool { !bytes.isEmpty && !bytes.contains(0x2F) && bytes != [0x2E] && bytes != [0x2E, 0x2E] }

  package static let recordSuffix = Array(".record".utf8)
  /// The end of the name of a job's data.
  package static let dataSuffix = Array(".part".utf8)

  package var data: FileName { FileName(bytes + Self.dataSuffix) }

  package var isData: Bool { bytes.suffix(Self.dataSuffix.count) == Self.dataSuffix[...] }

  package var dataOwner: FileName { FileName(Array(bytes.dropLast(Self.dataSuffix.count))) }

  /// Without `.record`; cut, if the name was too long for the suffix.
  package var recordSubject: FileName { FileName(Array(bytes.dropLast(Self.recordSuffix.count))) }

  package var hasRecordSuffix: Bool {
    bytes.count > Self.recordSuffix.count && bytes.suffix(Self.recordSuffix.count) == Self.recordSuffix[...]
  }

  /// The name is too long to be in its record's name as a whole.
  var hasLongRecord: Bool { bytes.count > Self.maximumLength - Self.recordSuffix.count }

  package var record: FileName {
    FileName(Array(bytes.prefix(Self.maximumLength - Self.recordSuffix.count)) + Self.recordSuffix)
  }
}

/// The directories of a spool that are in no ``Directory``: it need not have them.
enum OtherDirectory: String, CaseIterable {
  case hooks, keys, pieces, roots, servers

  var path: Path { Path(rawValue) }
}

/// A path below some directory, as bytes for the kernel.
package struct Path: Hashable, Sendable {
  /// Without the NUL at its end.
  package let bytes: [UInt8]

  /// - Parameter bytes: without NUL; nothing checks that.
  package init(_ bytes: [UInt8]) { self.bytes = bytes }
  package init(_ string: String) { bytes = Array(string.utf8) }
  /// Relative to the spool.
  package init(_ directory: Directory, _ name: FileName) {
    let directory = directory.rawValue.utf8
    var bytes: [UInt8] = []
    bytes.reserveCapacity(directory.count + 1 + name.bytes.count)
    bytes += directory
    bytes.append(0x2F)
    bytes += name.bytes
    self.bytes = bytes
  }
  package init(_ directory: Directory) { bytes = Array(directory.rawValue.utf8) }
  /// An entry of the directory that the path is relative to.
  package init(_ name: FileName) { bytes = name.bytes }

  func appending(_ name: FileName) -> Path { Path(bytes + [0x2F] + name.bytes) }

  package var display: String { escaped(bytes) }

  var name: FileName? {
    guard let last = bytes.lastIndex(where: { $0 != 0x2F }) else { return nil }
    let start = bytes[...last].lastIndex(of: 0x2F).map { $0 + 1 } ?? 0
    return FileName(Array(bytes[start...last]))
  }

  var directory: Directory? { Directory(rawValue: String(decoding: bytes.prefix { $0 != 0x2F }, as: UTF8.self)) }

  func withCString<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: bytes.count + 1) { buffer in
      bytes.withUnsafeBytes { UnsafeMutableRawBufferPointer(buffer).copyMemory(from: $0) }
      buffer[bytes.count] = 0
      return body(UnsafePointer(buffer.baseAddress!))
    }
  }
}

/// A job's name: its file name, which carries no meaning.
package struct JobName: Hashable, Sendable {
  /// So that `NAME:HOST.PID.TAG` fits a directory entry of 255 bytes.
  package static let maximumLength = 180

  package let fileName: FileName

  package static func defect(of name: FileName) -> String? {
    let bytes = name.bytes
    if bytes.isEmpty { return "an empty name" }
    if bytes.count > maximumLength { return "its name has \(bytes.count) bytes, more than \(maximumLength)" }
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

  package var display: String { fileName.display }

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
    return numbered(number).fileName == name || fileName.suffixed("~\(number)", limit: Self.maximumLength) == name
  }

  init(unchecked name: FileName) { fileName = name }
}

/// A file name in `cur/`: the job's and its owner's.
package struct ClaimName: Sendable {
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
