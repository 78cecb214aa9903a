internal import Glibc
internal import Spool
internal import SystemPackage

/// The bytes of a list, a block at a time.
final class ByteSource {
  static let blockSize = 64 << 10

  private let read: (UnsafeMutableRawBufferPointer) throws -> Int
  /// Read ahead, to tell the format.
  private var ahead: [UInt8]?

  /// - Parameter read: as read(2): how many bytes it has put into the buffer; 0 at the end.
  init(_ read: @escaping (UnsafeMutableRawBufferPointer) throws -> Int) { self.read = read }

  /// - Parameter next: the bytes that follow; nil at the end.
  convenience init(parts next: @escaping () throws -> [UInt8]?) {
    var rest: ArraySlice<UInt8> = []
    self.init { buffer in
      while rest.isEmpty, let part = try next() { rest = part[...] }
      let count = min(buffer.count, rest.count)
      buffer.copyBytes(from: rest.prefix(count))
      rest = rest.dropFirst(count)
      return count
    }
  }

  convenience init(_ bytes: [UInt8]) {
    var bytes: [UInt8]? = bytes
    self.init(parts: { bytes.take() })
  }

  convenience init(_ file: PlainFile) { self.init { try file.read($0) } }

  /// The first block, which ``next()`` returns once more.
  func peek() throws -> [UInt8] {
    let block = try next() ?? []
    ahead = block
    return block
  }

  /// Whether a text in UTF-16 is little-endian, as its first bytes say: a byte order mark, or half a letter of ASCII;
  /// nil for one that is not in UTF-16.
  static func isLittleEndian(_ head: [UInt8]) -> Bool? {
    guard head.count >= 2 else { return nil }
    switch (head[0], head[1]) {
    case (0xFF, 0xFE), (1..., 0): return true
    case (0xFE, 0xFF), (0, 1...): return false
    default: return nil
    }
  }

  static func units(_ bytes: [UInt8], isLittle: Bool) -> [UInt16] {
    stride(from: 0, to: bytes.count - 1, by: 2).map {
      UInt16(bytes[$0]) << (isLittle ? 0 : 8) | UInt16(bytes[$0 + 1]) << (isLittle ? 8 : 0)
    }
  }

  func inUTF8() throws -> ByteSource {
    guard let isLittle = Self.isLittleEndian(try peek()) else { return self }
    var left: [UInt8] = []
    return ByteSource(parts: {
      guard let block = try self.next() else { return nil }
      let bytes = left + block
      var units = Self.units(bytes, isLittle: isLittle)
      // Half a character waits for the next block.
      if block.count == Self.blockSize, units.last.map(UTF16.isLeadSurrogate) == true { units.removeLast() }
      left = Array(bytes[(units.count * 2)...])
      guard block.count == Self.blockSize || left.isEmpty, let valid = String(validating: units, as: UTF16.self) else {
        throw Defect(line: nil, reason: "it looks like UTF-16, and is not: save the list as UTF-8")
      }
      return Array(valid.utf8)
    })
  }

  /// nil at the end. Only the last block is shorter than ``blockSize``.
  func next() throws -> [UInt8]? {
    if let ahead {
      self.ahead = nil
      return ahead.isEmpty ? nil : ahead
    }
    let block = try [UInt8](unsafeUninitializedCapacity: Self.blockSize) { buffer, filled in
      while filled < Self.blockSize {
        let count = try read(UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[filled...]))
        if count == 0 { break }
        filled += count
      }
    }
    return block.isEmpty ? nil : block
  }
}

/// The bytes of a file or of standard input, from the first to the last.
final class PlainFile {
  let name: String
  let descriptor: Int32

  private init(_ name: String, _ descriptor: Int32) { (self.name, self.descriptor) = (name, descriptor) }

  deinit { close(descriptor) }

  static func open(_ path: [UInt8]?) throws(SpoolError) -> PlainFile {
    let name = path.map { escaped($0) } ?? "standard input"
    let descriptor = path.map { Glibc.open($0.map { CChar(bitPattern: $0) } + [0], O_RDONLY | O_CLOEXEC) } ?? dup(0)
    guard descriptor >= 0 else { throw SpoolError(call: .open, path: name, errno: Errno(rawValue: errno)) }
    return PlainFile(name, descriptor)
  }

  /// As read(2): how many bytes were put into the buffer; 0 at the end.
  func read(_ buffer: UnsafeMutableRawBufferPointer) throws(SpoolError) -> Int {
    while true {
      let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
      if count >= 0 { return count }
      if errno != EINTR { throw SpoolError(call: .read, path: name, errno: Errno(rawValue: errno)) }
    }
  }
}

/// The bytes of a file, or of standard input, as they are.
/// - Parameter path: nil for standard input.
/// - Parameter limit: the most bytes that it may have.
/// - Throws: ``SpoolError``; ``Defect`` where there are more.
package func wholeFile(_ path: [UInt8]?, limit: Int) throws -> [UInt8] {
  let source = ByteSource(try PlainFile.open(path))
  var bytes: [UInt8] = []
  while let block = try source.next() {
    bytes += block
    if bytes.count > limit { throw Defect(line: nil, reason: "it has more than \(limit >> 20) MiB") }
  }
  return bytes
}

/// 128 bits in place of some bytes, in memory: a hit needs no second look. Each process has its own.
/// (`String.hashValue` is the same for different spellings of one character.)
package struct Fingerprint: Hashable, Sendable {
  /// Enough where a look follows, or a wrong hit does no harm.
  package let low: Int
  private let high: Int

  package init(_ text: String) { self.init(Array(text.utf8)) }

  package init(_ bytes: [UInt8]) {
    func hash(_ salt: UInt8) -> Int {
      var hasher = Hasher()
      hasher.combine(salt)
      bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
      return hasher.finalize()
    }
    (low, high) = (hash(0), hash(1))
  }

  /// A set takes the bits as they are.
  package func hash(into hasher: inout Hasher) { hasher.combine(low) }
}

/// Makes UTF-8 of the bytes of an XML feed, in whichever charset they are (XML 1.0, appendix F).
final class TextDecoder {
  private let converter: iconv_t?
  private let charset: String
  /// The bytes of a character that is not complete yet.
  private var rest: [UInt8] = []
  /// What is wrong with the declared charset; nil if nothing is.
  let problem: String?

  private static let byteOrderMarks: [(bytes: [UInt8], charset: String)] = [
    ([0xEF, 0xBB, 0xBF], "UTF-8"), ([0xFF, 0xFE, 0, 0], "UTF-32LE"), ([0xFF, 0xFE], "UTF-16LE"),
    ([0xFE, 0xFF], "UTF-16BE"),
  ]
  /// Prefixes of the charsets that a stranger may choose: those of the web, without any that have states. The C library
  /// has more than a feed needs.
  private static let known = [
    "utf-8", "utf8", "windows-", "cp125", "iso-8859-", "iso8859-", "koi8-", "gb", "big5", "shift_jis", "shift-jis",
    "sjis", "euc-jp", "euc-kr", "macintosh", "tis-620", "ibm866", "us-ascii",
  ]

  /// - Parameter head: the first bytes of the feed. The charset's tables may be files, which are opened now.
  init(_ head: [UInt8]) {
    let name = Self.charset(of: head)
    let isKnown = Self.known.contains { name.begins(with: $0) } || Self.byteOrderMarks.contains { $0.charset == name }
    let own = isKnown ? Self.converter(of: Self.wide(name)) : nil
    problem = own == nil ? "the charset `\(escaped(name.prefix(40)))` is not known here" : nil
    charset = own == nil ? "utf-8" : name
    converter = own ?? Self.converter(of: "UTF-8")
  }

  private static func converter(of charset: String) -> iconv_t? {
    let opened: iconv_t? = iconv_open("UTF-8", charset)
    return opened == iconv_t(bitPattern: -1) ? nil : opened
  }

  deinit { if let converter { iconv_close(converter) } }

  private static func charset(of head: [UInt8]) -> String {
    for mark in byteOrderMarks where head.starts(with: mark.bytes) { return mark.charset }
    if head.starts(with: [0x3C, 0]) { return "UTF-16LE" }
    if head.starts(with: [0, 0x3C]) { return "UTF-16BE" }
    let text = String(decoding: head.prefix(1024), as: UTF8.self)
    guard let start = text.utf8.firstRange(of: "<?xml".utf8)?.upperBound,
      let end = text.utf8[start...].firstRange(of: "?>".utf8)?.lowerBound,
      let key = text.utf8[start..<end].firstRange(of: "encoding".utf8)
    else { return "utf-8" }
    let value = text[key.upperBound..<end].split(at: "=\"' \t\r\n").first ?? "utf-8"
    let name = value.lowercasedASCII
    // In a charset of several bytes this would not have been read.
    let isImpossible = ["utf-16", "utf16", "utf-32", "ucs-", "iso-10646"].contains { name.begins(with: $0) }
    return isImpossible ? "utf-8" : name.begins(with: "x-") ? String(name.dropFirstBytes(2)) : name
  }

  /// The charset that is meant where many say another one, as browsers take it (encoding.spec.whatwg.org).
  private static func wide(_ name: String) -> String {
    switch name {
    case "utf8": "UTF-8"
    case "iso-8859-1", "iso8859-1", "us-ascii": "WINDOWS-1252"
    case "gb2312", "gbk", "gb_2312-80": "GB18030"
    case "shift_jis", "shift-jis", "sjis": "CP932"
    default: name.uppercased()
    }
  }

  /// The text of the next bytes, and where in it a letter of Latin-1 or U+FFFD is in the place of bytes that are none
  /// of the charset.
  func decode(_ block: [UInt8], isLast: Bool) -> (text: [UInt8], wrong: [Int]) {
    guard let converter else { return (block, []) }
    var input = rest + block
    // No charset makes more of a byte.
    var text = [UInt8](repeating: 0, count: input.count * 4)
    var wrong: [Int] = []
    var (taken, made) = (0, 0)
    while taken < input.count {
      let error = Self.convert(converter, &input, &taken, &text, &made)
      if error == 0 || error == EINVAL && !isLast { break }
      wrong.append(made)
      let byte = input[taken]
      let isLatin = charset.begins(with: "utf-8") && byte >= 0xA0
      let letter: [UInt8] = isLatin ? [0xC0 | byte >> 6, 0x80 | byte & 0x3F] : [0xEF, 0xBF, 0xBD]
      text.replaceSubrange(made..<made + letter.count, with: letter)
      made += letter.count
      taken = min(input.count, taken + unit)
    }
    rest = Array(input[taken...])
    text.removeLast(text.count - made)
    return (text, wrong)
  }

  /// Bytes that each character has at least.
  private var unit: Int { charset.begins(with: "UTF-16") ? 2 : charset.begins(with: "UTF-32") ? 4 : 1 }

  /// - Returns: 0 where all was converted, otherwise an errno of iconv(3).
  private static func convert(
    _ converter: iconv_t, _ input: inout [UInt8], _ taken: inout Int, _ text: inout [UInt8], _ made: inout Int
  ) -> Int32 {
    input.withUnsafeMutableBytes { source in
      text.withUnsafeMutableBytes { target in
        var from = source.baseAddress.map { ($0 + taken).assumingMemoryBound(to: CChar.self) }
        var to = target.baseAddress.map { ($0 + made).assumingMemoryBound(to: CChar.self) }
        var (left, room) = (source.count - taken, target.count - made)
        let isWhole = iconv(converter, &from, &left, &to, &room) != -1
        let error = errno
        (taken, made) = (source.count - left, target.count - room)
        return isWhole ? 0 : error
      }
    }
  }
}
