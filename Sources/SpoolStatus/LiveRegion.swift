/// The last lines of a terminal, drawn again in place. Pure: it gives the bytes to write (ECMA-48), in one piece, so that nothing flickers.
package struct LiveRegion: Sendable {
  /// The widths of the lines that stand there.
  private var drawn: [Int] = []

  package init() {}

  package var isEmpty: Bool { drawn.isEmpty }

  /// - Parameters:
  ///   - above: lines that go up into the scrollback, over the region.
  ///   - columns: of the window now; where it became narrower, terminals have wrapped the lines that were there.
  package mutating func draw(_ lines: [StyledLine], above: [String] = [], columns: Int) -> String {
    var result = back(columns)
    // Lines that may wrap must find nothing below them.
    if !above.isEmpty { result += "\u{1B}[J" + above.map { $0 + "\n" }.joined() }
    // The whole row first: what is erased behind the text still counts as text for some terminals when they wrap it anew.
    for line in lines { result += "\u{1B}[2K\(line.trimmed)\n" }
    drawn = lines.map(\.width)
    return result + "\u{1B}[J"
  }

  /// Leaves no trace but `above`.
  package mutating func erase(above: [String] = [], columns: Int) -> String { draw([], above: above, columns: columns) }

  /// To the region's first column and row.
  private func back(_ columns: Int) -> String {
    let rows = drawn.reduce(0) { $0 + max(1, ($1 + columns - 1) / max(1, columns)) }
    return rows == 0 ? "\r" : "\r\u{1B}[\(rows)A"
  }
}
