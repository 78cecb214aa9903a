internal import Spool

/// A ``SpoolSnapshot`` as a table for people. Pure.
package struct StatusTable {
  private let snapshot: SpoolSnapshot
  private let look: Look
  private let width: Int
  private let selected: TableSubject?
  private let isFiltered: Bool
  private let limit: (JobState) -> Int

  /// - Parameters:
  ///   - width: the maximum number of columns.
  ///   - selected: the job to mark.
  ///   - isFiltered: whether `snapshot` lacks jobs on purpose.
  ///   - limit: the maximum number of jobs of a state to list.
  package init(
    _ snapshot: SpoolSnapshot, _ look: Look, width: Int, selected: TableSubject? = nil, isFiltered: Bool = false,
    limit: @escaping (JobState) -> Int
  ) {
    self.snapshot = snapshot
    self.look = look
    self.width = max(1, width)
    self.selected = selected
    self.isFiltered = isFiltered
    self.limit = limit
  }

  /// The lines of the table.
  package var lines: [StyledLine] {
    let rows = rows.flatMap(\.lines)
    if rows.isEmpty { return summary }
    return summary + [StyledLine(look)] + (heading.map { [$0] } ?? []) + rows
  }

  /// What ``lines`` begins with: the numbers of jobs, and what concerns all of them.
  package var summary: [StyledLine] {
    var lines = counts
    for directory in snapshot.unreadable {
      lines.append(line("\(directory.rawValue): this user may not read it", .yellow))
    }
    if snapshot.unproven > 0 {
      lines.append(line("\(snapshot.unproven) done, but perhaps incomplete: see spoolrun verify", .yellow))
    }
    return lines
  }

  /// The names of the columns; nil if no job is listed.
  package var heading: StyledLine? { groups.isEmpty ? nil : columns.heading }

  /// The jobs by state, what was done lately, the standing orders, and the workers.
  package var rows: [TableRow] {
    let columns = columns
    let jobs = groups.flatMap { group($0, columns) }
    let orders = OrderLines(
      snapshot: snapshot, look: look, width: width, limit: limit(.running), selected: selected, isFiltered: isFiltered)
    let rest =
      isFiltered
      ? []
      : DoneLines(snapshot: snapshot, look: look, width: width).lines
        + WorkerLines(snapshot: snapshot, look: look, width: width).lines
    return jobs + orders.rows + rest.map { TableRow(lines: [$0]) }
  }

  private var groups: [JobState] {
    JobState.allCases.filter { state in
      state != .done && snapshot.count(state) > 0 && !(isFiltered && (snapshot.jobs[state] ?? []).isEmpty)
    }
  }

  private var columns: JobColumns {
    let listed = groups.flatMap { (snapshot.jobs[$0] ?? []).prefix(limit($0)) }
    return JobColumns(listed, now: snapshot.time, width: width, look: look)
  }

  private func line(_ text: String, _ ink: Ink? = nil) -> StyledLine {
    StyledLine(clipped(text, to: width, ellipsis: look.ellipsis), look, ink)
  }

  // MARK: total

  private var counts: [StyledLine] {
    let counts = JobState.allCases.filter { snapshot.count($0) > 0 }.map {
      (state: $0, text: "\(snapshot.count($0)) \($0.rawValue)")
    }
    // Directories that could not be read may contain jobs.
    guard !counts.isEmpty else { return snapshot.unreadable.isEmpty ? [line("no jobs")] : [] }
    var lines = [StyledLine(look)]
    for (index, count) in counts.enumerated() {
      let whole = count.text + (index + 1 < counts.count ? ", " : "")
      let text = clipped(whole, to: width, ellipsis: look.ellipsis)
      if lines[lines.count - 1].width > 0, lines[lines.count - 1].width + text.utf8.count > width {
        lines.append(StyledLine(look))
      }
      lines[lines.count - 1].append(text, count.state.ink)
    }
    let bytes = wholeBytes
    if !bytes.isEmpty { lines.append(line(bytes)) }
    return lines
  }

  /// The bytes of all jobs that have begun, the rate, and the time left for the running ones.
  private var wholeBytes: String {
    guard snapshot.stored > 0 || snapshot.count(.running) > 0 else { return "" }
    var text = shortBytes(snapshot.stored)
    if let (bytes, total) = snapshot.progress, total >= bytes, total > 0 {
      text = "\(shortBytes(bytes)) of \(shortBytes(total)) (\(percentage(bytes, of: total))%)"
    }
    if let rate = snapshot.rate { text += ", \(shortRate(rate))" }
    if let left = snapshot.secondsLeft { text += ", \(shortDuration(left)) left" }
    return text
  }

  // MARK: a state

  private func group(_ state: JobState, _ columns: JobColumns) -> [TableRow] {
    let count = snapshot.count(state)
    let known = snapshot.jobs[state] ?? []
    let shown = known.prefix(limit(state))
    // What all of them wait for is said once.
    let common = shown.count > 1 ? shared(shown.map(\.waits)) : nil
    var title = "\(state.rawValue) (" + (isFiltered ? "\(known.count) of \(count)" : "\(count)") + ")"
    if let sentence = common?.sentence { title += ": \(sentence)" }
    var rows = [TableRow(lines: [line(title, state == .failed ? .red : .bold)])]
    for job in shown {
      let lines = columns.lines(job, saysWait: common == nil, isSelected: job.subject == selected)
      rows.append(TableRow(lines: lines, subject: job.subject))
    }
    let more = (isFiltered ? known.count : count) - shown.count
    if more > 0 { rows.append(TableRow(lines: [line("  \(look.ellipsis) and \(more) more", .faint)])) }
    return rows
  }

  private func shared(_ waits: [JobWait?]) -> JobWait? {
    guard let first = waits.first, waits.allSatisfy({ $0 == first }) else { return nil }
    return first
  }
}

extension JobState {
  var ink: Ink? {
    switch self {
    case .failed: .red
    case .running: .green
    case .retrying, .interrupted: .yellow
    case .paused, .waiting, .done: nil
    }
  }
}
