/// The columns that `text` takes on a terminal, by the rules of wcwidth(3): 0 for marks that join the character before them, 2 for East Asian wide
/// and fullwidth ones (Unicode Standard Annex 11) and for emoji, 1 for all else. Emoji joined by U+200D count one by one, as terminals that don't
/// know the sequence show them.
package func displayWidth(_ text: some StringProtocol) -> Int {
  // Most names are plain ASCII, and for those the answer is quick.
  if text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return text.utf8.count }
  return text.unicodeScalars.reduce(0) { $0 + displayWidth($1) }
}

package func displayWidth(_ scalar: Unicode.Scalar) -> Int {
  switch scalar.value {
  case 0x20..<0x7F: return 1
  // Soft hyphen: a format character that terminals show.
  case 0xAD: return 1
  case 0..<0x20, 0x7F..<0xA0: return 0
  // Hangul vowels and final consonants stand within the syllable that their first consonant began.
  case 0x1160...0x11FF, 0xD7B0...0xD7FB: return 0
  // Regional indicators: a flag is two of them.
  case 0x1F1E6...0x1F1FF: return 1
  default: break
  }
  if scalar.value < 0x300 { return 1 }
  switch scalar.properties.generalCategory {
  case .nonspacingMark, .enclosingMark, .format, .lineSeparator, .paragraphSeparator: return 0
  default: break
  }
  return isWide(scalar.value) || scalar.properties.isEmojiPresentation ? 2 : 1
}

/// East Asian wide and fullwidth, but for the emoji among them.
private func isWide(_ value: UInt32) -> Bool {
  guard value >= 0x1100 else { return false }
  return wideRanges.contains { $0.contains(value) }
}

private let wideRanges: [ClosedRange<UInt32>] = [
  0x1100...0x115F, 0x2329...0x232A, 0x2E80...0x303E, 0x3041...0x3247, 0x3250...0x4DBF, 0x4E00...0xA4C6, 0xA960...0xA97C,
  0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE6B, 0xFF01...0xFF60, 0xFFE0...0xFFE6,
  0x16FE0...0x1B2FB,
  0x1F200...0x1F265, 0x20000...0x3FFFD,
]

/// `text` in at most `width` columns: where it is longer, its middle gives way to `ellipsis`, because names differ at their ends.
package func fitted(_ text: String, to width: Int, ellipsis: String = "…") -> String {
  if displayWidth(text) <= width { return text }
  let mark = displayWidth(ellipsis)
  guard width > mark else { return width == mark ? ellipsis : "" }
  let tail = (width - mark) / 2
  let characters = Array(text)
  // The longer half in front: whole characters with their marks.
  let front = prefix(of: characters, columns: width - mark - tail)
  let back = prefix(of: characters.reversed(), columns: tail)
  return String(front) + ellipsis + String(back.reversed())
}

/// `text` in at most `width` columns, cut at its end: for sentences.
package func clipped(_ text: String, to width: Int, ellipsis: String = "…") -> String {
  if displayWidth(text) <= width { return text }
  let mark = displayWidth(ellipsis)
  guard width > mark else { return width == mark ? ellipsis : "" }
  return String(prefix(of: Array(text), columns: width - mark)) + ellipsis
}

private func prefix(of characters: [Character], columns: Int) -> [Character] {
  var left = columns
  return Array(
    characters.prefix { character in
      left -= displayWidth(String(character))
      return left >= 0
    })
}

/// `text` with spaces behind it, or before it, up to `width` columns.
package func padded(_ text: String, to width: Int, left: Bool = false) -> String {
  let space = String(repeating: " ", count: max(0, width - displayWidth(text)))
  return left ? space + text : text + space
}
