internal import Spool

/// One job as a row of figures, and a remark if there is one: to their right in a wide window, below them in a narrow
/// one.
struct JobColumns {
  /// The columns of figures. In a narrow window the last ones are left out first.
  private enum Column: CaseIterable {
    case percent, left, rate, bytes, tries, bar

    var row: (heading: String, width: Int) {
      switch self {
      case .percent: ("%", 4)
      case .left: ("LEFT", 6)
      case .rate: ("RATE", 7)
      case .bytes: ("BYTES", 11)
      case .tries: ("TRY", 5)
      case .bar: ("", 12)
      }
    }

    /// The share comes before the rest of a long name.
    var leastName: Int { self == .percent ? 8 : 16 }
  }

  private static let order: [Column] = [.bar, .bytes, .percent, .rate, .left, .tries]
  private static let indent = 2
  private static let gap = 2
  /// With less room than this, remarks are below the figures.
  private static let narrowestRemark = 30
  /// What a remark leaves of its room makes bars longer, by this much at most.
  private static let usualRemark = 60
  private static let mostBar = 28

  private let columns: [Column]
  private let nameWidth: Int
  private let barWidth: Int
  private let triesWidth: Int
  /// The width of remarks to the right of the figures; nil if remarks are below.
  private let remarkWidth: Int?
  private let width: Int
  private let now: Timestamp
  private let look: Look

  /// - Parameter jobs: the jobs to show; their names set the width of the first column.
  /// - Parameter drawsBars: whether those that run have a bar where there is room for all figures.
  init(_ jobs: [JobStatus], now: Timestamp, width: Int, look: Look, drawsBars: Bool = false) {
    (self.now, self.width, self.look) = (now, width, look)
    let longest = max(8, jobs.map { displayWidth($0.name.display) }.max() ?? 0)
    triesWidth = max(Column.tries.row.width, jobs.map { Self.tries($0).utf8.count }.max() ?? 0)
    var chosen: [Column] = []
    var used = Self.indent
    for column in Column.allCases {
      let whole = used + Self.gap + (column == .tries ? triesWidth : column.row.width)
      if whole + min(longest, column.leastName) > width { continue }
      if column == .bar, !drawsBars || !jobs.contains(where: { $0.state == .running }) { continue }
      chosen.append(column)
      used = whole
    }
    columns = Self.order.filter { chosen.contains($0) }
    let room = width - used
    // With a remark to its right, a name gets at most half of the room.
    let shortName = min(longest, room / 2)
    let beside = room - shortName - Self.gap
    let longer = chosen.contains(.bar) ? min(Self.mostBar, max(0, beside - Self.usualRemark)) : 0
    barWidth = Column.bar.row.width + longer
    remarkWidth = chosen.contains(.tries) && beside >= Self.narrowestRemark ? beside - longer : nil
    nameWidth = remarkWidth == nil ? max(1, min(longest, room)) : shortName
  }

  var heading: StyledLine {
    let cells = columns.map { padded($0.row.heading, to: width(of: $0), left: true) }
    return row(padded("JOB", to: nameWidth), cells, nil, heading: true)
  }

  func lines(_ job: JobStatus, saysWait: Bool = true, isSelected: Bool = false) -> [StyledLine] {
    let name = fitted(job.name.display, to: nameWidth, ellipsis: look.ellipsis)
    let cells = columns.map { padded(cell($0, job), to: width(of: $0), left: true) }
    let remark = remark(job, saysWait: saysWait)
    let beside = remarkWidth.map { (clipped(remark, to: $0, ellipsis: look.ellipsis), job.remarkInk) }
    let figures = row(padded(name, to: nameWidth), cells, beside, isSelected: isSelected)
    if remarkWidth != nil || remark.isEmpty { return [figures] }
    let below = "    " + clipped(remark, to: max(1, width - 4), ellipsis: look.ellipsis)
    return [figures, StyledLine(below, look, job.remarkInk)]
  }

  private func width(of column: Column) -> Int {
    column == .bar ? barWidth : column == .tries ? triesWidth : column.row.width
  }

  private func row(
    _ name: String, _ cells: [String], _ remark: (text: String, ink: Ink?)?, heading: Bool = false,
    isSelected: Bool = false
  ) -> StyledLine {
    let space = String(repeating: " ", count: Self.gap)
    var line = StyledLine(look)
    line.append(
      padded(isSelected ? ">" : "", to: Self.indent) + ([name] + cells).joined(separator: space),
      heading ? .faint : isSelected ? .inverse : nil)
    if let remark, !remark.text.isEmpty {
      line.append(space)
      line.append(remark.text, remark.ink)
    }
    return line
  }

  private func cell(_ column: Column, _ job: JobStatus) -> String {
    switch column {
    case .bytes:
      guard let bytes = job.bytes ?? (job.total == nil ? nil : 0) else { return "" }
      return shortBytes(bytes) + (job.total.map { "/\(shortBytes($0))" } ?? "")
    case .percent: return job.total.map { "\(percentage(job.bytes ?? 0, of: $0))%" } ?? ""
    case .rate: return job.rate.map { shortRate($0) } ?? ""
    case .left: return job.secondsLeft.map { shortDuration($0) } ?? ""
    case .bar:
      guard job.state == .running, let total = job.total, total > 0 else { return "" }
      let filled = Int(Double(barWidth - 2) * min(1, Double(job.bytes ?? 0) / Double(total)))
      return "[\(padded(String(repeating: "=", count: filled), to: barWidth - 2))]"
    case .tries: return Self.tries(job)
    }
  }

  private static func tries(_ job: JobStatus) -> String {
    guard let attempts = job.attempts, let limit = job.attemptLimit else { return "" }
    return "\(attempts)/\(limit)"
  }

  /// The next attempt, silence, and what went wrong.
  private func remark(_ job: JobStatus, saysWait: Bool) -> String {
    var parts: [String] = []
    if let priority = job.priority, priority != .normal { parts.append("\(priority.rawValue) priority") }
    if job.awaitsDelivery { parts.append(job.state == .failed ? "not delivered" : "waits for its delivery") }
    if let next = job.next, job.state == .retrying {
      parts.append(next <= now ? "due now" : "next in \(shortDuration(next.seconds - now.seconds))")
    }
    if saysWait, let sentence = job.waits?.sentence { parts.append(sentence) }
    if let quiet = job.quiet { parts.append("no data for \(shortDuration(quiet))") }
    if let problem = job.problem {
      let reason = escaped(problem.reason)
      let isPast = job.state == .running
      // The group's heading already says `interrupted`.
      let code = problem.code == job.state.rawValue ? [] : [escaped(problem.code)]
      parts.append((isPast ? "before: " : "") + (code + (reason.isEmpty ? [] : [reason])).joined(separator: ": "))
    }
    return parts.joined(separator: "; ")
  }
}

extension JobStatus {
  fileprivate var remarkInk: Ink? {
    switch state {
    case .failed: .red
    case .running: quiet == nil ? .faint : .yellow
    case .retrying, .interrupted, .paused, .waiting, .done: .faint
    }
  }
}
