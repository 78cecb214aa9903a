/// The value of a journal line: words, `key=token` and `key="quoted"` (spool.5, JOURNAL).
package struct Fields: Sendable, Equatable {
  package private(set) var words: [String] = []
  package private(set) var named: [(key: String, value: String)] = []

  /// A value of words alone; ``with(_:_:)`` adds fields.
  package init(_ words: String...) {
    self.words = words
    // Few lines have more.
    named.reserveCapacity(12)
  }
  init(words: [String]) { self.words = words }

  package subscript(key: String) -> String? { named.first { $0.key == key }?.value }

  package var time: Timestamp? { words.first.flatMap { Timestamp($0) } }
  package func time(_ key: String) -> Timestamp? { self[key].flatMap { Timestamp($0) } }
  package func number(_ key: String) -> UInt64? { self[key].flatMap { amount($0) } }
  /// Only compared: its file system may use all 64 bits.
  package func inode(_ key: String) -> UInt64? { self[key].flatMap { decimal($0) } }

  package static func == (left: Fields, right: Fields) -> Bool {
    left.words.elementsEqual(right.words) { $0.exact == $1.exact }
      && left.named.elementsEqual(right.named) { $0.key.exact == $1.key.exact && $0.value.exact == $1.value.exact }
  }

  /// This and `key=value`; unchanged when `value` is nil.
  package consuming func with(_ key: String, _ value: (some CustomStringConvertible)?) -> Fields {
    add(key, value)
    return self
  }

  mutating func add(_ key: String, _ value: (some CustomStringConvertible)?) {
    if let value { named.append((key, value.description)) }
  }

  /// The line's text; values are quoted where they need it.
  package var text: String {
    var bytes: [UInt8] = []
    append(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  func append(to bytes: inout [UInt8]) {
    var isFirst = true
    for word in words {
      if !isFirst { bytes.append(0x20) }
      isFirst = false
      bytes.append(utf8Of: word)
    }
    for (key, value) in named {
      if !isFirst { bytes.append(0x20) }
      isFirst = false
      bytes.append(utf8Of: key)
      bytes.append(0x3D)
      Self.appendQuoted(value, to: &bytes)
    }
  }

  /// `value` as it is if it has only characters that cannot be misread. Otherwise in quotes, in which `"`, `\` and what
  /// is unsafe to show on a terminal are escaped.
  private static func appendQuoted(_ value: String, to bytes: inout [UInt8]) {
    var text = value
    let isASCII = text.withUTF8 { text in
      if !text.isEmpty, text.allSatisfy(isPlain) {
        bytes += text
        return true
      }
      guard text.allSatisfy({ 0x20...0x7E ~= $0 }) else { return false }
      bytes.append(0x22)
      for byte in text {
        if byte == 0x22 || byte == 0x5C { bytes.append(0x5C) }
        bytes.append(byte)
      }
      bytes.append(0x22)
      return true
    }
    if isASCII { return }
    let quoted = doubleQuoted(value) { scalar in
      UTF8.encode(scalar)!.map { "\\x" + hexadecimal(UInt64($0), digits: 2) }.joined()
    }
    bytes.append(utf8Of: quoted)
  }

  /// Letters, digits, and `-._:/+%@~,*[]?`.
  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    // `-./`, `*+,`, `:?@`, `[]`, `%_~`
    case 0x2D...0x2F, 0x2A...0x2C, 0x3A, 0x3F, 0x40, 0x5B, 0x5D, 0x25, 0x5F, 0x7E: true
    default: false
    }
  }

  /// The lines of a small file that has `key: value` in each: what a worker says of itself, or of a server.
  static func lines(of text: some StringProtocol) -> [(key: Substring, value: Fields?)] {
    Substring(text).split(at: "\n").map { line in
      let key = line.prefix(before: ":")
      return (key, key.endIndex < line.endIndex ? Fields(parsing: line[key.endIndex...].dropFirstBytes()) : nil)
    }
  }

  /// nil when a quote is left open, or for an escape other than those that ``text`` writes.
  package init?(parsing text: some StringProtocol) {
    var rest = Array(text.utf8)[...]
    while true {
      rest = rest.drop { $0 == 0x20 }
      if rest.isEmpty { return }
      let head = rest.prefix { $0 != 0x20 && $0 != 0x3D }
      rest = rest.dropFirst(head.count)
      guard rest.first == 0x3D else {
        words.append(String(decoding: head, as: UTF8.self))
        continue
      }
      rest = rest.dropFirst()
      guard let value = Self.value(&rest) else { return nil }
      named.append((String(decoding: head, as: UTF8.self), value))
    }
  }

  /// Takes a value, in quotes or up to the next blank, from the beginning of `rest`.
  private static func value(_ rest: inout ArraySlice<UInt8>) -> String? {
    guard rest.first == 0x22 else {
      let token = rest.prefix { $0 != 0x20 }
      rest = rest.dropFirst(token.count)
      return String(decoding: token, as: UTF8.self)
    }
    rest = rest.dropFirst()
    var value: [UInt8] = []
    while let byte = rest.popFirst() {
      switch byte {
      case 0x22: return String(decoding: value, as: UTF8.self)
      case 0x5C:
        guard let escaped = escapedByte(&rest) else { return nil }
        value.append(escaped)
      default: value.append(byte)
      }
    }
    return nil
  }

  /// Takes what follows a backslash: a quote, a backslash, or `x` and two hexadecimal digits.
  private static func escapedByte(_ rest: inout ArraySlice<UInt8>) -> UInt8? {
    switch rest.popFirst() {
    case 0x22: return 0x22
    case 0x5C: return 0x5C
    case UInt8(ascii: "x"):
      guard rest.count >= 2, rest.first != UInt8(ascii: "+"), rest.first != UInt8(ascii: "-"),
        let byte = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
      else { return nil }
      rest = rest.dropFirst(2)
      return byte
    default: return nil
    }
  }
}
