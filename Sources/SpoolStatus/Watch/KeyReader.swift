/// A key of a terminal, as far as `status --watch` knows it.
package enum Key: Sendable, Equatable {
  case up, down, pageUp, pageDown, home, end, enter, escape, backspace
  /// Ctrl-L.
  case redraw
  /// A character that is shown.
  case character(Character)
}

/// Reads keys from what a terminal sends: characters in UTF-8, and the sequences of ECMA-48 and of the VT220 for keys
/// without one. Pure.
package struct KeyReader: Sendable {
  private var bytes: [UInt8] = []

  /// Nothing was read yet.
  package init() {}

  /// Whether a sequence has begun: its rest, or ``end()``, says what it is.
  package var isWaiting: Bool { !bytes.isEmpty }

  /// The keys that are complete.
  package mutating func read(_ new: some Sequence<UInt8>) -> [Key] {
    bytes += new
    var keys: [Key] = []
    while !bytes.isEmpty, let (length, key) = next() {
      bytes.removeFirst(length)
      if let key { keys.append(key) }
    }
    return keys
  }

  /// No rest has come: what begins like a sequence was the key Escape.
  package mutating func end() -> [Key] {
    defer { bytes = [] }
    return bytes.first == 0x1B ? [.escape] : []
  }

  /// The next key and the number of its bytes; no key for a sequence that is not known.
  /// - Returns: nil if its end has not come.
  private func next() -> (length: Int, key: Key?)? {
    switch bytes[0] {
    case 0x1B: return sequence()
    case 0x0A, 0x0D: return (1, .enter)
    case 0x08, 0x7F: return (1, .backspace)
    case 0x0C: return (1, .redraw)
    case 0..<0x20: return (1, nil)
    default: return character()
    }
  }

  private func character() -> (length: Int, key: Key?)? {
    let length =
      switch bytes[0] {
      case 0xC2...0xDF: 2
      case 0xE0...0xEF: 3
      case 0xF0...0xF4: 4
      default: 1
      }
    if bytes.count < length { return nil }
    guard let text = String(validating: bytes.prefix(length), as: UTF8.self), let character = text.first else {
      return (1, nil)
    }
    return (length, .character(character))
  }

  private func sequence() -> (length: Int, key: Key?)? {
    if bytes.count < 2 { return nil }
    switch bytes[1] {
    // SS3, which keypads in application mode send.
    case UInt8(ascii: "O"): return bytes.count < 3 ? nil : (3, Self.named[bytes[2]])
    // CSI: parameters, and a final byte.
    case UInt8(ascii: "["):
      guard let end = bytes.indices.dropFirst(2).first(where: { !(0x20...0x3F).contains(bytes[$0]) }) else {
        // Nothing sends that many.
        return bytes.count > 32 ? (bytes.count, nil) : nil
      }
      let final = bytes[end]
      let number = Int(String(decoding: bytes[2..<end].prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self))
      let key = final == UInt8(ascii: "~") ? number.flatMap { Self.numbered[$0] } : Self.named[final]
      return (end + 1, key)
    default: return (1, .escape)
    }
  }

  private static let named: [UInt8: Key] = [
    UInt8(ascii: "A"): .up, UInt8(ascii: "B"): .down, UInt8(ascii: "H"): .home, UInt8(ascii: "F"): .end,
  ]
  private static let numbered: [Int: Key] = [
    1: .home, 4: .end, 5: .pageUp, 6: .pageDown, 7: .home, 8: .end,
  ]
}
