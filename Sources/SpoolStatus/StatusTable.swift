internal import Spool

/// A ``SpoolSnapshot`` as a table for people. Pure.
package struct StatusTable {
  private let snapshot: SpoolSnapshot
  private let look: Look
  private let width: Int
  private let height: Int?
  private let limit: (JobState) -> Int

  /// - Parameters:
  ///   - width: the maximum number of columns.
  ///   - height: the maximum number of rows; nil for no maximum.
  ///   - limit: the maximum number of jobs of a state to list.
  package init(
    _ snapshot: SpoolSnapshot, _ look: Look, width: Int, height: Int? = nil, limit: @escaping (JobState) -> Int
  ) {
    self.snapshot = snapshot
    self.look = look
    self.width = max(1, width)
    self.height = height
    self.limit = limit
  }

  /// The lines of the table, as wide as the terminal.
  package var lines: [StyledLine] {
    var lines = summary
    for directory in snapshot.unreadable {
      lines.append(line("\(directory.rawValue): this user may not read it", .yellow))
    }
    if snapshot.unproven > 0 {
      lines.append(line("\(snapshot.unproven) done, but perhaps incomplete: see spoolrun verify", .yellow))
    }
    let footer =
      OrderLines(snapshot: snapshot, look: look, width: width, limit: limit(.running)).lines
      + WorkerLines(snapshot: snapshot, look: look, width: width).lines
    let groups = JobState.allCases.filter { $0 != .done && snapshot.count($0) > 0 }
    guard !groups.isEmpty else { return cut(lines + (footer.isEmpty ? [] : [StyledLine(look)] + footer)) }
    let listed = groups.flatMap { (snapshot.jobs[$0] ?? []).prefix(limit($0)) }
    let columns = JobColumns(listed, now: snapshot.time, width: width, look: look)
    lines += [StyledLine(look), columns.heading]
    for (index, state) in groups.enumerated() {
      // Each of the following states needs two rows: a heading and "more".
      let room = height.map { max(0, $0 - lines.count - 2 * (groups.count - index - 1)) }
      lines += group(state, columns, room: room)
    }
    return cut(lines + footer)
  }

  private func cut(_ lines: [StyledLine]) -> [StyledLine] { height.map { Array(lines.prefix($0)) } ?? lines }

  private func line(_ text: String, _ ink: Ink? = nil) -> StyledLine {
    StyledLine(clipped(text, to: width, ellipsis: look.ellipsis), look, ink)
  }

  // MARK: total

  private var summary: [StyledLine] {
    let counts = JobState.allCases.filter { snapshot.count($0) > 0 }.map {
      (state: $0, text: "\(snapshot.count($0)) \($0.rawValue)")
    }
    // Directories that could not be read may contain jobs.
    guard !counts.isEmpty else { return snapshot.unreadable.isEmpty ? [line("no jobs")] : [] }
    var lines = [StyledLine(look)]
    for (index, count) in counts.enumerated() {
      let text = count.text + (index + 1 < counts.count ? ", " : "")
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

  private func group(_ state: JobState, _ columns: JobColumns, room: Int?) -> [StyledLine] {
    let count = snapshot.count(state)
    let jobs = (snapshot.jobs[state] ?? []).prefix(limit(state)).map { columns.lines($0) }
    var lines: [StyledLine] = [line("\(state.rawValue) (\(count))", state == .failed ? .red : .bold)]
    var shown = 0
    for job in jobs {
      // A row stays free for "more", unless this is the last job.
      let isLast = shown + 1 == count
      let space = room.map { $0 - lines.count - (isLast ? 0 : 1) } ?? job.count
      if space < 1 { break }
      // If not all lines fit, the remark is left out.
      lines += job.prefix(space)
      shown += 1
    }
    if shown < count, room.map({ lines.count < $0 }) ?? true {
      lines.append(line("  \(look.ellipsis) and \(count - shown) more", .faint))
    }
    return lines
  }
}

extension JobState {
  var ink: Ink? {
    switch self {
    case .failed: .red
    case .running: .green
    case .retrying, .interrupted: .yellow
    default: nil
    }
  }
}
