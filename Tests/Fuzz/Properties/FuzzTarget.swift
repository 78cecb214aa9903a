/// One reader of strangers' bytes. The raw value names it on the fuzzer's command line and its directory in
/// `Tests/Fuzz/Corpus`.
package enum FuzzTarget: String, CaseIterable, Sendable {
  case job, fields, name, output, moment, range, head, digests, answer, url, disposition, list, links, feed,
    pieces

  /// Reads `bytes` as this target does, and holds what comes out against what has to be true of it.
  /// - Throws: the property that does not hold.
  package func check(_ bytes: [UInt8]) throws(Violation) {
    switch self {
    case .job: try checkJob(bytes)
    case .fields: try checkFields(bytes)
    case .name: try checkName(bytes)
    case .output: try checkOutput(bytes)
    case .moment: try checkMoment(bytes)
    case .range: try checkRange(bytes)
    case .head: try checkHead(bytes)
    case .digests: try checkDigests(bytes)
    case .answer: try checkAnswer(bytes)
    case .url: try checkURL(bytes)
    case .disposition: try checkDisposition(bytes)
    case .list: try checkList(bytes)
    case .links: try checkLinks(bytes)
    case .feed: try checkFeed(bytes)
    case .pieces: try checkPieces(bytes)
    }
  }
}

/// A property that does not hold for some input.
package struct Violation: Error, CustomStringConvertible {
  package let description: String
}

/// Throws `property` as a violation unless it holds.
func require(_ holds: Bool, _ property: @autoclosure () -> String) throws(Violation) {
  guard holds else { throw Violation(description: property()) }
}

/// C0, DEL and C1: what a terminal obeys.
func hasControls(_ text: String) -> Bool {
  text.unicodeScalars.contains { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) }
}

/// The same bytes; `==` on strings takes different spellings of one character for the same.
func same(_ left: String?, _ right: String?) -> Bool { left.map { Array($0.utf8) } == right.map { Array($0.utf8) } }
