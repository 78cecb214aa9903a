/// The last lines of a terminal, redrawn in place. Pure: it returns the bytes to write (ECMA-48), in one piece to avoid
/// flicker.
package struct LiveRegion: Sendable {
  /// The widths of the lines that are on the screen.
  private var drawn: [Int] = []

  /// Nothing is drawn yet.
  package init() {}

  /// Whether nothing is drawn.
  package var isEmpty: Bool { drawn.isEmpty }

  /// - Parameters:
  ///   - above: lines to print above the region, from where they scroll up.
  ///   - columns: the window's current width. If it has become narrower, the terminal has wrapped the lines.
  package mutating func draw(_ lines: [StyledLine], above: [String] = [], columns: Int) -> String {
    var result = back(columns)
    // These lines may wrap, so everything below them is erased first.
    if !above.isEmpty { result += "\u{1B}[J" + above.map { $0 + "\n" }.joined() }
    // Erases the whole row before the text, not the rest of it afterwards: some terminals treat cells that were erased
    // after the text as text when they wrap lines again.
    for line in lines { result += "\u{1B}[2K\(line.trimmed)\n" }
    drawn = lines.map(\.width)
    return result + "\u{1B}[J"
  }

  /// Erases the region and prints `above`.
  package mutating func erase(above: [String] = [], columns: Int) -> String { draw([], above: above, columns: columns) }

  /// Moves the cursor to the region's first row and column.
  private func back(_ columns: Int) -> String {
    let rows = drawn.reduce(0) { $0 + max(1, ($1 + columns - 1) / max(1, columns)) }
    return rows == 0 ? "\r" : "\r\u{1B}[\(rows)A"
  }
}
