internal import Glibc
internal import Spool

/// A line of a list, without its end: UTF-8 without control bytes other than tabs.
struct ListLine: Sendable {
  let text: String
  /// From 1.
  let number: Int

  /// Begins with a blank or a tab.
  var isIndented: Bool { text.utf8.first == 0x20 || text.utf8.first == 0x09 }
  /// Without the blanks and tabs around it.
  var content: Substring { trimmed(text[...]) }
}

/// The lines of a list.
struct LineReader {
  /// The most bytes that a line may have: a job's text has no more.
  static let longest = JobText.maximumRequest

  private let source: ByteSource
  private var buffer: [UInt8] = []
  private var position = 0
  private var isAtEnd = false
  /// The lines that were read.
  private(set) var number = 0
  /// Where the next line begins, in bytes.
  private(set) var offset = 0

  init(_ source: ByteSource) { self.source = source }

  /// The next line, or what is wrong with it; nil at the end. The last one need not end in a newline.
  /// - Throws: ``Defect`` where the rest cannot be read; ``SpoolError``.
  mutating func next() throws -> Result<ListLine, Defect>? {
    guard let bytes = try nextBytes() else { return nil }
    let number = number
    return Result { () throws(Defect) in ListLine(text: try Self.text(bytes, number), number: number) }
  }

  private mutating func nextBytes() throws -> ArraySlice<UInt8>? {
    var searched = position
    while true {
      if let end = newline(from: searched) { return take(to: end, skipping: 1) }
      if isAtEnd { return position < buffer.count ? take(to: buffer.count, skipping: 0) : nil }
      if buffer.count - position > Self.longest {
        throw Defect(line: number + 1, reason: "a line of over 64 KiB: a list is plain text")
      }
      let rest = Array(buffer[position...])
      searched = rest.count
      position = 0
      if let block = try source.next() {
        buffer = rest + block
      } else {
        buffer = rest
        isAtEnd = true
      }
    }
  }

  private func newline(from start: Int) -> Int? {
    buffer.withUnsafeBytes { bytes in
      guard start < bytes.count, let base = bytes.baseAddress,
        let found = memchr(base + start, 0x0A, bytes.count - start)
      else { return nil }
      return UnsafeRawPointer(found) - base
    }
  }

  private mutating func take(to end: Int, skipping: Int) -> ArraySlice<UInt8> {
    let line = buffer[position..<end]
    offset += end + skipping - position
    position = end + skipping
    number += 1
    return line
  }

  private static func text(_ line: ArraySlice<UInt8>, _ number: Int) throws(Defect) -> String {
    var line = line
    if line.last == 0x0D { line.removeLast() }
    // A byte order mark.
    if number == 1, line.starts(with: [0xEF, 0xBB, 0xBF]) { line = line.dropFirst(3) }
    if line.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) {
      throw Defect(line: number, reason: "control bytes: a list is plain text")
    }
    guard let text = String(validating: line, as: UTF8.self) else { throw Defect(line: number, reason: "not UTF-8") }
    return text
  }
}
