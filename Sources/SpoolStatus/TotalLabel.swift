/// What the line of a total counts, and what went wrong.
struct TotalLabel {
  /// `3 of 5 jobs`
  let count: String
  /// `3/5`, where there is less room.
  let shortCount: String
  /// `1 failed`; shown as long as anything is.
  let troubles: [(text: String, ink: Ink)]

  /// From the longest to the shortest.
  func variants(_ look: Look) -> [StyledLine] {
    [count, shortCount].map { count in
      var line = StyledLine(count, look, .bold)
      for trouble in troubles {
        line.append(", ")
        line.append(trouble.text, trouble.ink)
      }
      return line
    }
  }

  /// The longest one, for a sentence.
  var text: String { ([count] + troubles.map(\.text)).joined(separator: ", ") }
  /// The shortest one, what went wrong first: the end of it may be cut off.
  var shortest: String { (troubles.map(\.text) + [shortCount]).joined(separator: ", ") }
}
