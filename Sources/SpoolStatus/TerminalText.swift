package struct Look: Sendable {
  /// Whether colours may be used (https://no-color.org).
  package var isColored: Bool
  package var ellipsis: String

  /// - Parameter isUnicode: whether the output can show characters beyond ASCII (locale(7)).
  package init(isColored: Bool, isUnicode: Bool = true) {
    self.isColored = isColored
    ellipsis = isUnicode ? "…" : "~"
  }
}

/// Select Graphic Rendition parameters (ECMA-48 section 8.3.117).
package enum Ink: String, Sendable {
  case bold = "1"
  case faint = "2"
  case red = "31"
  case green = "32"
  case yellow = "33"
  case inverse = "7"
}

/// A line for a terminal. Its width does not include the colour codes.
package struct StyledLine: Sendable {
  /// With escape sequences for colors, if the terminal has colors.
  package private(set) var text = ""
  package private(set) var width = 0
  private let isColored: Bool

  package init(_ look: Look) { isColored = look.isColored }

  /// - Parameter plain: text without control characters.
  package init(_ plain: String, _ look: Look, _ ink: Ink? = nil) {
    self.init(look)
    append(plain, ink)
  }

  /// - Parameter sentence: cut at its end to `width` columns.
  init(_ sentence: String, within width: Int, _ look: Look, _ ink: Ink? = nil) {
    self.init(clipped(sentence, to: width, ellipsis: look.ellipsis), look, ink)
  }

  package mutating func append(_ plain: String, _ ink: Ink? = nil) {
    width += displayWidth(plain)
    if isColored, let ink, !plain.isEmpty { text += "\u{1B}[\(ink.rawValue)m\(plain)\u{1B}[0m" } else { text += plain }
  }

  /// The text without spaces at its end, which could wrap.
  package var trimmed: String {
    var text = text
    while text.utf8.last == 0x20 { text.unicodeScalars.removeLast() }
    return text
  }
}

/// The columns that `text` takes on a terminal, by the rules of wcwidth(3): 0 for combining marks, 2 for East Asian
/// wide and fullwidth characters (Unicode Standard Annex 11) and for emoji, 1 for all others. Emoji joined by U+200D
/// count one by one, as on terminals that don't know the sequence.
package func displayWidth(_ text: some StringProtocol) -> Int {
  // A fast path: most names are plain ASCII.
  if text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return text.utf8.count }
  return text.unicodeScalars.reduce(0) { $0 + displayWidth($1) }
}

package func displayWidth(_ scalar: Unicode.Scalar) -> Int {
  switch scalar.value {
  case 0..<0x20, 0x7F..<0xA0: return 0
  // The soft hyphen, too, is a format character, but terminals show it.
  case ..<0x300: return 1
  // Hangul vowels and final consonants are drawn within the syllable that the first consonant began.
  case 0x1160...0x11FF, 0xD7B0...0xD7FB: return 0
  // Regional indicators: two of them make a flag.
  case 0x1F1E6...0x1F1FF: return 1
  default: break
  }
  switch scalar.properties.generalCategory {
  case .nonspacingMark, .enclosingMark, .format, .lineSeparator, .paragraphSeparator: return 0
  default: break
  }
  let isWide = scalar.value >= 0x1100 && wideRanges.contains { $0.contains(scalar.value) }
  return isWide || scalar.properties.isEmojiPresentation ? 2 : 1
}

/// The characters that are East Asian wide or fullwidth. Emoji are not covered here.
private let wideRanges: [ClosedRange<UInt32>] = [
  0x1100...0x115F, 0x2329...0x232A, 0x2E80...0x303E, 0x3041...0x3247, 0x3250...0x4DBF, 0x4E00...0xA4C6, 0xA960...0xA97C,
  0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE6B, 0xFF01...0xFF60, 0xFFE0...0xFFE6,
  0x16FE0...0x1B2FB, 0x1F200...0x1F265, 0x20000...0x3FFFD,
]

/// `text` in at most `width` columns. If it is longer, `ellipsis` replaces its middle, because names differ at their
/// ends.
package func fitted(_ text: String, to width: Int, ellipsis: String = "…") -> String {
  shortened(text, to: width, ellipsis, keepsEnd: true)
}

/// `text` in at most `width` columns, cut at its end. For sentences.
package func clipped(_ text: String, to width: Int, ellipsis: String = "…") -> String {
  shortened(text, to: width, ellipsis, keepsEnd: false)
}

private func shortened(_ text: String, to width: Int, _ ellipsis: String, keepsEnd: Bool) -> String {
  if displayWidth(text) <= width { return text }
  let room = width - displayWidth(ellipsis)
  guard room > 0 else { return room == 0 ? ellipsis : "" }
  // The front is the longer half. Characters keep their combining marks.
  let tail = keepsEnd ? room / 2 : 0
  let characters = Array(text)
  let front = beginning(of: characters[...], columns: room - tail)
  let back = keepsEnd ? beginning(of: Array(characters.reversed())[...], columns: tail) : []
  return String(front) + ellipsis + String(back.reversed())
}

/// As many characters as fit into so many columns.
func beginning(of characters: ArraySlice<Character>, columns: Int) -> ArraySlice<Character> {
  var left = columns
  return characters.prefix { character in
    left -= displayWidth(String(character))
    return left >= 0
  }
}

/// `text` followed by spaces, or with `left` preceded by them, up to `width` columns.
package func padded(_ text: String, to width: Int, left: Bool = false) -> String {
  let space = String(repeating: " ", count: max(0, width - displayWidth(text)))
  return left ? space + text : text + space
}

/// The last lines of a terminal, redrawn in place. Pure: it returns the bytes to write (ECMA-48), in one piece to avoid
/// flicker.
package struct LiveRegion: Sendable {
  private var drawn: [Int] = []

  package init() {}

  package var isEmpty: Bool { drawn.isEmpty }

  /// - Parameter above: lines to print above the region, from where they scroll up.
  /// - Parameter columns: the window's current width. If it has become narrower, the terminal has wrapped the lines.
  package mutating func draw(_ lines: [StyledLine], above: [String] = [], columns: Int) -> String {
    let rows = drawn.reduce(0) { $0 + max(1, ($1 + columns - 1) / max(1, columns)) }
    var result = rows == 0 ? "\r" : "\r\u{1B}[\(rows)A"
    // These lines may wrap, so everything below them is erased first.
    if !above.isEmpty { result += "\u{1B}[J" + above.map { $0 + "\n" }.joined() }
    // Erases the whole row before the text, not the rest of it afterwards: some terminals treat cells that were erased
    // after the text as text when they wrap lines again.
    for line in lines { result += "\u{1B}[2K\(line.trimmed)\n" }
    drawn = lines.map(\.width)
    return result + "\u{1B}[J"
  }

  package mutating func erase(columns: Int) -> String { draw([], columns: columns) }
}
