internal import Glibc

/// The text of a feed while it is mended: a block, and what is left of the one before. Where it is looked through, the
/// C library does it.
struct XMLText {
  /// What was not taken yet, and a NUL.
  private var bytes: [UInt8] = [0]
  var position = 0
  /// The line of the first byte, and how much of that line is before it.
  private var start = (line: 1, column: 0)

  /// Bytes of a reference, such as `&thetasym;`.
  private static let longestReference = 12

  var end: Int { bytes.count - 1 }
  subscript(index: Int) -> UInt8 { bytes[index] }
  subscript(range: Range<Int>) -> ArraySlice<UInt8> { bytes[range] }

  /// Adds a block, and drops what is before ``position``.
  /// - Returns: where the block begins.
  mutating func append(_ block: [UInt8]) -> Int {
    start = place(position)
    bytes.removeFirst(position)
    position = 0
    let known = end
    bytes.removeLast()
    bytes += block
    bytes.append(0)
    // A byte order mark.
    if start == (1, 0), bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
    return known
  }

  func place(_ index: Int) -> (line: Int, column: Int) {
    let (count, last) = lineEnds(0..<index)
    return last.map { (start.line + count, index - $0 - 1) } ?? (start.line, start.column + index)
  }

  func lineEnds(_ range: Range<Int>) -> (count: Int, last: Int?) {
    var (count, last, index) = (0, Int?.none, range.lowerBound)
    while let next = self.index(of: "\n", from: index, to: range.upperBound) {
      (count, last, index) = (count + 1, next, next + 1)
    }
    return (count, last)
  }

  /// Whether the text goes on so, in either case of letters.
  func begins(_ word: StaticString, at index: Int? = nil) -> Bool {
    at(index ?? position) { text in
      let letters = UnsafeRawPointer(word.utf8Start).assumingMemoryBound(to: CChar.self)
      return strncasecmp(text, letters, word.utf8CodeUnitCount) == 0
    }
  }

  /// There is always a byte, the NUL, and so an address.
  private func at<Value>(_ index: Int, _ body: (UnsafePointer<CChar>) -> Value) -> Value {
    bytes.withUnsafeBytes { body(($0.baseAddress! + index).assumingMemoryBound(to: CChar.self)) }
  }

  func index(of word: StaticString, from start: Int, to limit: Int? = nil) -> Int? {
    bytes.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress else { return nil }
      let last = (limit ?? end) - word.utf8CodeUnitCount
      var index = start
      while index <= last, let found = memchr(base + index, Int32(word.utf8Start.pointee), last - index + 1) {
        index = UnsafeRawPointer(found) - base
        if memcmp(found, word.utf8Start, word.utf8CodeUnitCount) == 0 { return index }
        index += 1
      }
      return nil
    }
  }

  /// How many of the next bytes are not in the set. The NUL ends them.
  func length(until stops: ByteSet, from start: Int? = nil) -> Int { at(start ?? position) { strcspn($0, stops.text) } }

  func length(of set: ByteSet, from start: Int) -> Int { at(start) { strspn($0, set.text) } }

  func nameEnd(from start: Int) -> Int { start + length(of: ByteSet.names, from: start) }

  func pastSpace(_ start: Int) -> Int { start + length(of: ByteSet.spaces, from: start) }

  /// The reference that begins with the `&` at `start`. One byte of length is for a raw `&`.
  /// - Returns: nil if the text may go on with the rest of it.
  func reference(at start: Int, to end: Int, isWhole: Bool) -> (length: Int, isSound: Bool)? {
    let limit = min(end, start + Self.longestReference)
    let mark = bytes[start + 1] == UInt8(ascii: "#") ? 2 : 1
    let stop = min(limit, nameEnd(from: start + mark))
    if stop == end, !isWhole, limit == end { return nil }
    guard stop < limit, bytes[stop] == UInt8(ascii: ";"), stop > start + 1 else { return (1, false) }
    let name = String(decoding: bytes[(start + 1)..<stop], as: UTF8.self)
    let length = stop + 1 - start
    guard name.utf8.first == UInt8(ascii: "#") else {
      return (length, ["lt", "gt", "amp", "quot", "apos"].contains(name))
    }
    let isHexadecimal = name.utf8.dropFirst().first == UInt8(ascii: "x")
    let value = UInt32(name.dropFirst(isHexadecimal ? 2 : 1), radix: isHexadecimal ? 16 : 10) ?? 0
    let isCharacter =
      Unicode.Scalar(value) != nil && (value >= 0x20 || [9, 10, 13].contains(value)) && value & 0xFFFE != 0xFFFE
    return (length, isCharacter)
  }
}

/// Bytes that are looked for in text by the C library, as fast as it can.
struct ByteSet {
  let bytes: [UInt8]
  /// The same, but for the NUL, which ends them.
  let text: [CChar]

  init(_ bytes: some Sequence<UInt8>) {
    self.bytes = Array(bytes)
    text = self.bytes.filter { $0 != 0 }.map { CChar(bitPattern: $0) } + [0]
  }

  /// The characters that XML does not have (XML 1.0 section 2.2).
  static let controls = ByteSet((0..<32).filter { ![9, 10, 13].contains($0) })
  static let special = ByteSet(Array("&<>".utf8) + controls.bytes)

  static let spaces = ByteSet(Array(" \n\t\r".utf8))
  static let nameStarts = ByteSet(Array(0x41...0x5A) + Array(0x61...0x7A) + [0x5F] + Array(0x80...0xFF))
  static let names = ByteSet(nameStarts.bytes + Array("0123456789-.:".utf8))
  static let ends = ByteSet(spaces.bytes + Array(">".utf8))

  static let specialInValue = ByteSet(Array("&<\"".utf8) + controls.bytes)
}
