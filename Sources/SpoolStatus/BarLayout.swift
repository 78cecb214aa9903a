/// Fits a name, a bar and figures into a number of columns. In a narrow window the bytes are left out first, then the
/// rate, then the bar.
struct BarLayout {
  struct Figures {
    var bytes: UInt64
    var total: UInt64?
    var rate: Double?
    var left: Int64?
    var isEstimate = false
    /// The number of the picture. It moves the bar of a job whose size is unknown.
    var turn = 0
  }

  let nameWidth: Int
  private let barWidth: Int
  private let showsFigures: Bool
  private let showsRate: Bool
  private let showsBytes: Bool
  private let look: Look

  /// ` 30%` and ` ~3m20s`, each with the space before it.
  private static let shortFigures = 5 + 8
  private static let rateWidth = 8
  private static let bytesWidth = 12
  private static let narrowestBar = 10
  private static let widestBar = 60

  /// - Parameters:
  ///   - names: the widths of the names.
  ///   - label: the widths of the total's possible labels, from the longest to the shortest.
  init(width: Int, names: [Int], label: [Int], look: Look) {
    self.look = look
    showsFigures = width >= 20
    showsRate = width >= 52
    showsBytes = width >= 68
    let figures =
      (showsFigures ? Self.shortFigures : 0) + (showsRate ? Self.rateWidth : 0) + (showsBytes ? Self.bytesWidth : 0)
    let room = max(0, width - figures)
    // Names get the width that they need, up to half of the room. The shortest label always fits.
    let longest = max(names.max() ?? 0, label.first { $0 <= room / 2 } ?? label.last ?? 0)
    let hasBar = showsFigures && room >= Self.narrowestBar + 6
    let name = min(longest, hasBar ? max(room / 2, room - Self.widestBar - 1) : room)
    nameWidth = max(0, name)
    barWidth = hasBar ? min(Self.widestBar, room - nameWidth - 1) : 0
  }

  func line(_ name: String, _ figures: Figures, ink: Ink? = nil) -> StyledLine {
    var line = StyledLine(look)
    line.append(padded(name, to: nameWidth), ink)
    if barWidth > 0 {
      line.append(" ")
      appendBar(figures, &line)
    }
    guard showsFigures else { return line }
    let percent = figures.total.map { "\(percentage(figures.bytes, of: $0))%" } ?? ""
    line.append(padded(percent, to: 5, left: true))
    if showsBytes {
      let mark = figures.isEstimate ? "~" : "/"
      line.append(
        padded(
          shortBytes(figures.bytes) + (figures.total.map { mark + shortBytes($0) } ?? ""), to: Self.bytesWidth,
          left: true))
    }
    if showsRate { line.append(padded(figures.rate.map { shortRate($0) } ?? "", to: Self.rateWidth, left: true)) }
    let left = figures.left.map { (figures.isEstimate ? "~" : "") + shortDuration($0) } ?? ""
    line.append(padded(left, to: 8, left: true))
    return line
  }

  private func appendBar(_ figures: Figures, _ line: inout StyledLine) {
    let inner = barWidth - 2
    func repeated(_ text: String, _ count: Int) -> String { String(repeating: text, count: max(0, count)) }
    line.append("[", .faint)
    if let total = figures.total {
      let filled = total == 0 ? inner : min(inner, Int(Double(inner) * (Double(figures.bytes) / Double(total))))
      if filled > 0 { line.append(repeated("=", filled - 1) + (filled == inner ? "=" : ">"), .green) }
      line.append(repeated(" ", inner - filled))
    } else {
      // The size is unknown: a mark moves to and fro.
      let span = max(1, inner - 3)
      let phase = figures.turn % (2 * span)
      let position = phase < span ? phase : 2 * span - phase
      line.append(repeated(" ", position))
      line.append("<=>", .green)
      line.append(repeated(" ", inner - 3 - position))
    }
    line.append("]", .faint)
  }
}
