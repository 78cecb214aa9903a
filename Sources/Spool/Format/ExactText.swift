/// Text from outside, such as a URL, a path or a header field, to be compared: it equals only the same bytes.
///
/// Swift compares strings by canonical equivalence, where é equals e with an accent, and cuts them between characters,
/// where a `?` with an accent behind it is no `?`. To a server and to a file system these are different texts. So
/// foreign text is compared as ``exact``, and cut by its `utf8` and by what is below (a test of the style looks).
package struct ExactText: Hashable, Comparable, Sendable {
  /// As it came.
  package let text: String

  package static func == (one: ExactText, other: ExactText) -> Bool {
    // Texts that are not equivalent are found out much faster.
    one.text == other.text && one.text.utf8.elementsEqual(other.text.utf8)
  }

  package static func < (one: ExactText, other: ExactText) -> Bool {
    one.text.utf8.lexicographicallyPrecedes(other.text.utf8)
  }

  /// Adds the bytes, and where they end.
  package func hash(into hasher: inout Hasher) {
    var text = text
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    hasher.combine(0xFF as UInt8)
  }
}

extension StringProtocol {
  /// The text to be compared by its bytes.
  package var exact: ExactText { ExactText(text: String(self)) }

  /// Whether its first bytes are these.
  @inlinable
  package func begins(with start: some StringProtocol) -> Bool { utf8.starts(with: start.utf8) }

  /// Whether its last bytes are these.
  @inlinable
  package func ends(with end: some StringProtocol) -> Bool { utf8.reversed().starts(with: end.utf8.reversed()) }

  /// With ASCII letters in lower case, and all else as it is.
  @inlinable
  package var lowercasedASCII: String {
    String(decoding: utf8.map { 0x41...0x5A ~= $0 ? $0 | 0x20 : $0 }, as: UTF8.self)
  }

  /// Up to the first of these ASCII characters, or all of it.
  @inlinable
  package func prefix(before stops: String) -> SubSequence {
    self[..<(utf8.firstIndex { stops.utf8.contains($0) } ?? endIndex)]
  }

  /// Behind its first bytes.
  /// - Parameter count: of bytes that end a character of UTF-8.
  @inlinable
  package func dropFirstBytes(_ count: Int = 1) -> SubSequence {
    self[(utf8.index(startIndex, offsetBy: count, limitedBy: endIndex) ?? endIndex)...]
  }

  /// The parts between these ASCII characters.
  @inlinable
  package func split(
    at separators: String, maxSplits: Int = .max, omittingEmptySubsequences: Bool = true
  ) -> [SubSequence] {
    utf8.split(maxSplits: maxSplits, omittingEmptySubsequences: omittingEmptySubsequences) {
      separators.utf8.contains($0)
    }.map { self[$0.startIndex..<$0.endIndex] }
  }
}
