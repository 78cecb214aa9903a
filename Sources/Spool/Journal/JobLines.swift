internal import Glibc

/// The lines of a job's file (spool.5). Here alone is how a line begins and ends, and which lines are the journal's.
/// Nothing is decoded that is not asked for: some read a hundred thousand files. ``JobText`` judges a job, and takes
/// thirty times as long.
struct JobLines: Sequence, IteratorProtocol {
  /// A job says by a line that begins so that it is from a signed list, and who has signed that. It counts only in a
  /// file of the user whose workers write the journals, as a journal does (``JournalScan/request(in:)``).
  static let signedStart = "# signed by "

  private let bytes: UnsafeRawBufferPointer
  private var position = 0
  private var number = 0

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  mutating func next() -> JobLine? {
    guard position < bytes.count, let base = bytes.baseAddress else { return nil }
    let start = position
    let newline = memchr(base + start, 0x0A, bytes.count - start).map { UnsafeRawPointer($0) - base }
    position = newline.map { $0 + 1 } ?? bytes.count
    number += 1
    return JobLine(
      bytes: UnsafeRawBufferPointer(rebasing: bytes[start..<(newline ?? position)]), number: number,
      range: start..<position)
  }

  /// The lines that are kept, without a byte order mark: it counts for nothing only at the beginning of a file.
  static func kept(of bytes: [UInt8], _ isKept: (JobLine) -> Bool) -> [UInt8] {
    bytes.withUnsafeBytes { all in
      var kept: [UInt8] = []
      for line in JobLines(all) where isKept(line) { kept += all[line.range].dropFirst(line.hasMark ? 3 : 0) }
      return kept
    }
  }

  /// The same for those before the first that did not happen. In a text without that one, those behind it would count.
  static func happened(of bytes: [UInt8], _ isKept: (JobLine) -> Bool) -> [UInt8] {
    var (hasBegun, isOver) = (false, false)
    return kept(of: bytes) { line in
      isOver = isOver || !line.isComplete || line.isLost(inJournal: hasBegun)
      hasBegun = hasBegun || line.journal != nil
      return !isOver && isKept(line)
    }
  }

  /// Whether the text is what a worker writes beside something that is no job: one `failed:` line alone. A job may have
  /// a record's name, too.
  /// - Parameter isTorn: whether the worker may have died within the line.
  static func isRecord(_ bytes: [UInt8], orBeginsOne isTorn: Bool = false) -> Bool {
    let count = bytes.count { $0 == 0x0A }
    let head = "\(JournalKey.failed.rawValue): ".utf8
    return isTorn ? count <= 1 && zip(bytes, head).allSatisfy { $0 == $1 } : count == 1 && bytes.starts(with: head)
  }
}

/// One line of a job's file. It is valid only as long as the bytes that it is from.
struct JobLine {
  /// Without the newline.
  let bytes: UnsafeRawBufferPointer
  /// Counted from 1.
  let number: Int
  /// Its place in the file, with the newline.
  let range: Range<Int>

  /// Whether it has a newline. A line without one did not happen, or is still being written.
  var isComplete: Bool { range.count > bytes.count }

  var hasZero: Bool { bytes.contains(0) }

  /// Whether a power cut has left zeros in place of this journal line, perhaps the first. It and all behind it did not
  /// happen.
  func isLost(inJournal: Bool) -> Bool { hasZero && (inJournal || number > 1 && mayBeginJournal) }

  /// A byte order mark in front.
  var hasMark: Bool { number == 1 && bytes.starts(with: [0xEF, 0xBB, 0xBF]) }

  private static let heads = JournalKey.allCases.map { (key: $0, bytes: Array("\($0.rawValue):".utf8)) }

  /// Its key and its value, if it is the journal's. A person may write it without a blank behind the colon.
  var journal: ScannedLine? { journal(isFirst: number == 1) }

  /// - Parameter isFirst: whether a byte order mark in front counts for nothing.
  func journal(isFirst: Bool) -> ScannedLine? {
    var content = bytes
    if isFirst || isBlank(content.first ?? 0) {
      content = UnsafeRawBufferPointer(
        rebasing: bytes.drop { isBlank($0) || isFirst && [0xEF, 0xBB, 0xBF].contains($0) })
    }
    guard
      let head = Self.heads.first(where: { head in
        head.bytes.count <= content.count && memcmp(head.bytes, content.baseAddress!, head.bytes.count) == 0
      })
    else { return nil }
    let value = content[head.bytes.count...]
    // A URL whose scheme is such a word.
    if value.starts(with: "//".utf8) { return nil }
    return ScannedLine(key: head.key, value: UnsafeRawBufferPointer(rebasing: value.drop(while: isBlank)))
  }

  /// Whether it may have become a line of the journal, had its writer not been interrupted.
  var mayBeginJournal: Bool {
    let written = bytes.prefix { $0 != 0 }
    return Self.heads.contains { head in zip(written, head.bytes + [0x20]).allSatisfy { $0 == $1 } }
  }

  enum Content {
    /// A comment, or nothing.
    case comment(Substring)
    case journal(JournalKey, Substring)
    case url(Substring)
    case setting(key: Substring, Substring)
    /// Neither a URL nor `key: value`.
    case other
  }

  func content() throws(InvalidValue) -> Content {
    let text = try decoded()
    let content = trimmed(text[...])
    if content.isEmpty || content.utf8.first == UInt8(ascii: "#") { return .comment(content) }
    let head = content.prefix(before: ":")
    let rest = content[head.endIndex...]
    if rest.begins(with: "://") { return .url(content) }
    if rest.isEmpty { return .other }
    let value = trimmed(rest.dropFirstBytes())
    return JournalKey(rawValue: String(head)).map { .journal($0, value) } ?? .setting(key: head, value)
  }

  private func decoded() throws(InvalidValue) -> String {
    var bytes = Array(bytes)
    if bytes.last == 0x0D { bytes.removeLast() }
    if hasMark { bytes.removeFirst(3) }
    if bytes.contains(where: isControl) { throw InvalidValue("control bytes: a job is plain text") }
    guard let text = String(validating: bytes, as: UTF8.self) else { throw InvalidValue("not UTF-8") }
    return text
  }

  /// Whether it has ``JobLines/signedStart`` at its first `#`, so that a byte order mark before it hides nothing.
  fileprivate var saysSigned: Bool {
    let start = Array(JobLines.signedStart.utf8)
    guard let mark = bytes.firstIndex(of: start[0]) else { return false }
    return bytes[mark...].starts(with: start)
  }

  /// Whether it sets one of these keys; a bare URL sets `url`. A line that cannot be read sets nothing.
  func sets(_ keys: Set<String>) -> Bool {
    switch Result(catching: content) {
    case .success(.url): keys.contains("url")
    case .success(.setting(let key, _)): keys.contains(String(key))
    case .success(.comment), .success(.journal), .success(.other), .failure: false
    }
  }
}

/// The lines that workers wrote into a job's file.
package enum JournalScan {
  /// The lines of `bytes` that are not the journal's, and do not say that a list was signed: what the job asks for. No
  /// reader finds a journal in them, whichever comes first.
  package static func request(in bytes: UnsafeRawBufferPointer) -> [UInt8] {
    var request: [UInt8] = []
    for line in JobLines(bytes) where line.journal(isFirst: true) == nil && !line.saysSigned {
      request.append(contentsOf: bytes[line.range])
    }
    return request
  }

  /// Hands each complete journal line of `bytes` to `body`, in order.
  package static func lines(_ bytes: UnsafeRawBufferPointer, _ body: (ScannedLine) -> Void) {
    var hasBegun = false
    for line in JobLines(bytes) where line.isComplete {
      if line.isLost(inJournal: hasBegun) { return }
      guard let journal = line.journal else { continue }
      hasBegun = true
      body(journal)
    }
  }

  /// Whether the last end of an attempt is `interrupted:`, not `failed:`.
  package static func endsInInterruption(_ bytes: [UInt8]) -> Bool {
    var isInterrupted = false
    bytes.withUnsafeBytes { bytes in
      lines(bytes) { if [.interrupted, .failed].contains($0.key) { isInterrupted = $0.key == .interrupted } }
    }
    return isInterrupted
  }
}

/// A journal line whose fields are looked for only when they are asked for. It is valid only as long as the bytes that
/// it is from.
package struct ScannedLine {
  package let key: JournalKey
  fileprivate let value: UnsafeRawBufferPointer

  /// What follows the key; nil if it is malformed.
  package var fields: Fields? { Fields(parsing: String(decoding: value, as: UTF8.self)) }

  /// Its time, the first word of most lines; nil if it has none.
  package var time: Timestamp? { value.count >= 20 ? Timestamp(utf8: value[..<20]) : nil }

  /// The number in the field `name`; nil if there is none, or it is no ``amount(_:)``.
  package func number(_ name: StaticString) -> UInt64? {
    field(name).flatMap { amount(String(decoding: $0, as: UTF8.self)) }
  }

  package func has(_ name: StaticString) -> Bool { field(name) != nil }

  /// The text of the field `name`, as ``Fields`` reads it; nil if there is none, or it is malformed.
  package func text(_ name: StaticString) -> String? {
    guard let bytes = field(name) else { return nil }
    guard bytes.first == 0x22 else { return String(decoding: bytes, as: UTF8.self) }
    return Fields(parsing: "x=" + String(decoding: bytes, as: UTF8.self))?["x"]
  }

  /// The bytes of the value, with its quotes.
  private func field(_ name: StaticString) -> UnsafeRawBufferPointer? {
    var position = 0
    while position < value.count {
      let start = position
      while position < value.count, value[position] != 0x20, value[position] != 0x3D { position += 1 }
      guard position < value.count, value[position] == 0x3D else {
        position += 1
        continue
      }
      let isWanted =
        position - start == name.utf8CodeUnitCount
        && memcmp(value.baseAddress! + start, name.utf8Start, position - start) == 0
      position += 1
      let content = position
      if position < value.count, value[position] == 0x22 {
        position += 1
        while position < value.count, value[position] != 0x22 { position += value[position] == 0x5C ? 2 : 1 }
        position = min(position + 1, value.count)
      } else {
        while position < value.count, value[position] != 0x20 { position += 1 }
      }
      if isWanted { return UnsafeRawBufferPointer(rebasing: value[content..<position]) }
      position += 1
    }
    return nil
  }
}
