internal import Glibc
internal import Spool

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
    "sjis",
    "euc-jp", "euc-kr", "macintosh", "tis-620", "ibm866", "us-ascii",
  ]

  /// - Parameter head: the first bytes of the feed. The charset's tables may be files, which are opened now.
  init(_ head: [UInt8]) {
    let name = Self.charset(of: head)
    let isKnown = Self.known.contains { name.begins(with: $0) } || Self.byteOrderMarks.contains { $0.charset == name }
    var opened = isKnown ? iconv_open("UTF-8", Self.wide(name)) : nil
    var problem: String?
    if opened == nil || opened == iconv_t(bitPattern: -1) {
      problem = "the charset `\(escaped(name.prefix(40)))` is not known here"
      opened = iconv_open("UTF-8", "UTF-8")
    }
    (self.problem, charset) = (problem, problem == nil ? name : "utf-8")
    converter = opened == iconv_t(bitPattern: -1) ? nil : opened
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
