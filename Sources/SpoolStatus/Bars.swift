/// Fits a name, a bar and figures into a number of columns. In a narrow window the bytes are left out first, then the
/// rate, then the bar. What went wrong is left out last.
struct BarLayout {
  /// The raw value is the mark before the total.
  enum Certainty: String {
    case exact = "/"
    case estimate = "~"
    /// It is at least this: the size of something that runs is unknown.
    case least = ">"
  }

  struct Figures {
    var bytes: UInt64
    var total: UInt64?
    var rate: Double?
    var certainty = Certainty.exact
    /// The number of the picture. It moves the bar of a job whose size is unknown.
    var turn = 0

    /// If the total is more than is known, the share is less.
    fileprivate var percent: String {
      guard let total else { return "" }
      let share = percentage(bytes, of: total)
      if certainty == .least { return share < 99 ? "<\(share + 1)%" : "" }
      return "\(share)%"
    }

    fileprivate var timeLeft: String {
      guard let left = secondsLeft(bytes, of: total, rate: rate) else { return "" }
      return (certainty == .exact ? "" : certainty.rawValue) + shortDuration(left)
    }
  }

  let nameWidth: Int
  private let barWidth: Int
  private let width: Int
  private let showsFigures: Bool
  private let showsRate: Bool
  private let showsBytes: Bool
  private let label: TotalLabel
  private let look: Look

  private static let percentWidth = 5
  /// ` ~3m20s`, with the space before it.
  private static let timeWidth = 8
  private static let rateWidth = 8
  private static let bytesWidth = 12
  private static let narrowestBar = 10
  private static let widestBar = 60

  init(width: Int, names: [Int], label: TotalLabel, look: Look) {
    (self.look, self.label) = (look, label)
    let labels = label.variants(look).map(\.width)
    self.width = width
    showsFigures = width >= 20
    showsRate = width >= 52
    showsBytes = width >= 68
    let figures =
      (showsFigures ? Self.percentWidth + Self.timeWidth : 0) + (showsRate ? Self.rateWidth : 0)
      + (showsBytes ? Self.bytesWidth : 0)
    let room = max(0, width - figures)
    let hasBar = showsFigures && room >= Self.narrowestBar + 6
    // Names get the width that they need, up to half of the room. A label that needs more makes the bars shorter, as
    // long as there are bars.
    let most = hasBar ? max(room / 2, room - Self.widestBar - 1) : room
    let wide = labels.last.flatMap { $0 < room - Self.narrowestBar ? $0 : nil } ?? 0
    let chosen = labels.first { $0 <= room / 2 } ?? wide
    nameWidth = max(0, min(max(names.max() ?? 0, chosen), max(most, hasBar ? wide : 0)))
    barWidth = hasBar ? min(Self.widestBar, room - nameWidth - 1) : 0
  }

  func line(_ name: String, _ figures: Figures) -> StyledLine { line(StyledLine(name, look), figures) }

  /// The line of the total. If its label does not fit, it takes the place of the bar, then that of the time left, then
  /// that of the share.
  func total(_ figures: Figures) -> StyledLine {
    let labels = label.variants(look)
    func longest(_ width: Int) -> StyledLine? { labels.first { $0.width <= width } }
    if let label = longest(nameWidth) { return line(label, figures) }
    let room = nameWidth + (barWidth > 0 ? 1 + barWidth : 0)
    if showsFigures {
      if let label = longest(room) { return line(label, figures, hasBar: false) }
      if let label = longest(room + Self.timeWidth) { return line(label, figures, hasBar: false, hasTime: false) }
    }
    return longest(width) ?? StyledLine(label.shortest, within: width, look, .bold)
  }

  private func line(_ name: StyledLine, _ figures: Figures, hasBar: Bool = true, hasTime: Bool = true) -> StyledLine {
    var line = name
    func pad(_ text: String, to width: Int) { line.append(padded(text, to: width, left: true)) }
    let labelWidth = (hasBar || barWidth == 0 ? nameWidth : nameWidth + 1 + barWidth) + (hasTime ? 0 : Self.timeWidth)
    line.append(padded("", to: labelWidth - name.width))
    if hasBar, barWidth > 0 {
      line.append(" ")
      appendBar(figures, &line)
    }
    guard showsFigures else { return line }
    pad(figures.percent, to: Self.percentWidth)
    if showsBytes {
      let total = figures.total.map { figures.certainty.rawValue + shortBytes($0) } ?? ""
      pad(shortBytes(figures.bytes) + total, to: Self.bytesWidth)
    }
    if showsRate { pad(figures.rate.map { shortRate($0) } ?? "", to: Self.rateWidth) }
    if hasTime { pad(figures.timeLeft, to: Self.timeWidth) }
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

  var text: String { ([count] + troubles.map(\.text)).joined(separator: ", ") }
  /// The shortest one, what went wrong first: the end of it may be cut off.
  var shortest: String { (troubles.map(\.text) + [shortCount]).joined(separator: ", ") }
}

package struct VerifyPicture: Sendable {
  package struct Progress: Sendable {
    package var files: Int
    /// Receipts whose payload is being read or was.
    package var begun = 0
    package var ended = 0
    /// Receipts among ``ended`` whose payload is not sound.
    package var bad = 0
    /// Bytes of the payloads that were begun.
    package var known: UInt64 = 0
    /// Bytes among ``known`` that were read.
    package var read: UInt64 = 0

    package init(files: Int) { self.files = files }
  }

  private var meter = RateMeter()
  private var progress = Progress(files: 0)
  private var turns = 0

  package init() {}

  /// Takes in the progress. `milliseconds` are of any clock that never jumps.
  package mutating func update(_ progress: Progress, at milliseconds: Int64) {
    self.progress = progress
    turns += 1
    meter.add(progress.read, at: milliseconds)
  }

  /// The size of payloads that were not begun is estimated: the mean of the others.
  private var total: (bytes: UInt64, isEstimate: Bool)? {
    let rest = progress.files - max(progress.begun, progress.ended)
    if rest <= 0 { return (progress.known, false) }
    guard progress.begun > 0 else { return nil }
    let mean = Double(progress.known) / Double(progress.begun)
    return (progress.known &+ UInt64(min(mean * Double(rest), 1e18)), true)
  }

  private var label: TotalLabel {
    TotalLabel(
      count: "\(progress.ended) of \(progress.files) files", shortCount: "\(progress.ended)/\(progress.files)",
      troubles: progress.bad > 0 ? [("\(progress.bad) bad", .red)] : [])
  }

  package func line(width: Int, _ look: Look) -> StyledLine {
    BarLayout(width: width, names: [], label: label, look: look).total(
      BarLayout.Figures(
        bytes: progress.read, total: total?.bytes, rate: meter.rate,
        certainty: total?.isEstimate == true ? .estimate : .exact, turn: turns))
  }
}
