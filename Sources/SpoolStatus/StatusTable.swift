package import Spool

package struct StatusTable {
  private let snapshot: SpoolSnapshot
  private let look: Look
  private let width: Int
  private let selected: TableSubject?
  private let isFiltered: Bool
  private let drawsBars: Bool
  private let limit: (JobState) -> Int

  /// - Parameter isFiltered: whether `snapshot` lacks jobs on purpose.
  /// - Parameter limit: the maximum number of jobs of a state to list.
  package init(
    _ snapshot: SpoolSnapshot, _ look: Look, width: Int, selected: TableSubject? = nil, isFiltered: Bool = false,
    drawsBars: Bool = false, limit: @escaping (JobState) -> Int
  ) {
    (self.snapshot, self.look) = (snapshot, look)
    self.width = max(1, width)
    self.selected = selected
    (self.isFiltered, self.drawsBars) = (isFiltered, drawsBars)
    self.limit = limit
  }

  private static let mostServers = 5

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
    for server in snapshot.servers.prefix(Self.mostServers) {
      lines.append(line(server.line(now: snapshot.time), .yellow))
    }
    if snapshot.servers.count > Self.mostServers {
      lines.append(line("\(look.ellipsis) and \(snapshot.servers.count - Self.mostServers) more servers", .faint))
    }
    if snapshot.unproven > 0 {
      lines.append(line("\(snapshot.unproven) done, but perhaps incomplete: see spoolrun verify", .yellow))
    }
    return lines
  }

  package var heading: StyledLine? { groups.isEmpty ? nil : columns.heading }

  package var rows: [TableRow] {
    let columns = columns
    let jobs = groups.flatMap { group($0, columns) }
    return jobs + orders + (isFiltered ? [] : recent + workers).map { TableRow(lines: [$0]) }
  }

  private var groups: [JobState] {
    JobState.allCases.filter { state in
      state != .done && snapshot.count(state) > 0 && !(isFiltered && (snapshot.jobs[state] ?? []).isEmpty)
    }
  }

  private var columns: JobColumns {
    let listed = groups.flatMap { (snapshot.jobs[$0] ?? []).prefix(limit($0)) }
    return JobColumns(listed, now: snapshot.time, width: width, look: look, drawsBars: drawsBars)
  }

  private func line(_ text: String, _ ink: Ink? = nil) -> StyledLine { StyledLine(text, within: width, look, ink) }

  private func more(_ count: Int) -> [StyledLine] {
    count > 0 ? [line("  \(look.ellipsis) and \(count) more", .faint)] : []
  }

  private func column(_ names: [FileName]) -> [String] {
    let shown = names.map { fitted($0.display, to: max(8, width / 2), ellipsis: look.ellipsis) }
    let widest = shown.map { displayWidth($0) }.max() ?? 0
    return shown.map { padded($0, to: widest) }
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
    var title = "\(places(shown, state)): \(isFiltered ? "\(known.count) of \(count)" : "\(count)") \(state.rawValue)"
    if let sentence = common?.sentence { title += ": \(sentence)" }
    var rows = [TableRow(lines: [line(title, state == .failed ? .red : .bold)])]
    for job in shown {
      let lines = columns.lines(job, saysWait: common == nil, isSelected: job.subject == selected)
      rows.append(TableRow(lines: lines, subject: job.subject))
    }
    return rows + more((isFiltered ? known.count : count) - shown.count).map { TableRow(lines: [$0]) }
  }

  private func places(_ jobs: ArraySlice<JobStatus>, _ state: JobState) -> String {
    let all = Directory.allCases.filter { directory in jobs.contains { $0.directory == directory } }
    return (all.isEmpty ? [state.usualDirectory] : all).map { "\($0.rawValue)/" }.joined(separator: ", ")
  }

  private func shared(_ waits: [WaitReason?]) -> WaitReason? {
    guard let first = waits.first, waits.allSatisfy({ $0 == first }) else { return nil }
    return first
  }

  // MARK: standing orders

  private var orders: [TableRow] {
    if snapshot.orderCount == 0 || isFiltered && snapshot.orders.isEmpty { return [] }
    let shown = snapshot.orders.prefix(limit(.running))
    let names = column(shown.map(\.name))
    let count = isFiltered ? "\(snapshot.orders.count) of \(snapshot.orderCount)" : "\(snapshot.orderCount)"
    var rows = [
      TableRow(lines: [line("standing/: \(count) \(count == "1" ? "subscription" : "subscriptions")", .bold)])
    ]
    for (name, order) in zip(names, shown) {
      let mark = order.subject == selected ? ">" : " "
      let text = "\(mark) \(name)  \(remark(order))"
      let ink = order.subject == selected ? .inverse : ink(order)
      rows.append(TableRow(lines: [line(text, ink)], subject: order.subject))
    }
    let left = (isFiltered ? snapshot.orders.count : snapshot.orderCount) - shown.count
    return rows + more(left).map { TableRow(lines: [$0]) }
  }

  private func ink(_ order: OrderStatus) -> Ink? {
    switch order.state {
    case .failed: .red
    case .running: .green
    case .retrying, .waiting, .interrupted, .paused, .done:
      order.problem == nil && order.problems.count == 0 ? nil : .yellow
    }
  }

  private func remark(_ order: OrderStatus) -> String {
    let now = snapshot.time
    var parts: [String] = []
    if order.state != .waiting { parts.append(order.shownState) }
    if let checked = order.checked {
      let entries = order.entries.map { $0 == 1 ? " (1 entry)" : " (\($0) entries)" } ?? ""
      parts.append("checked \(shortDuration(max(0, now.seconds - checked.seconds))) ago\(entries)")
    } else {
      parts.append("never checked")
    }
    if let next = order.next, order.state == .waiting {
      parts.append(next <= now ? "due now" : "next in \(shortDuration(next.seconds - now.seconds))")
    }
    var text = parts.joined(separator: ", ")
    if let problems = order.problems.text { text += "; \(problems)" }
    if let problem = order.problem { text += "; \(escaped(problem.code)): \(escaped(problem.reason))" }
    return text
  }

  // MARK: what was done lately

  private var recent: [StyledLine] {
    let jobs = snapshot.recent ?? []
    if jobs.isEmpty { return [] }
    return [line("done/: \(snapshot.count(.done)) done", .bold)]
      + zip(column(jobs.map(\.name)), jobs).map { name, job in line("  \(name)  \(remark(job))") }
      + more(snapshot.count(.done) - jobs.count)
  }

  private func remark(_ job: DoneStatus) -> String {
    let figures = job.figures.map { "\($0.text), " } ?? ""
    return figures + "\(shortDuration(max(0, snapshot.time.seconds - job.time.seconds))) ago"
  }

  // MARK: workers

  private static let mostWorkers = 20

  private var workers: [StyledLine] {
    let workers = snapshot.workers
    if workers.isEmpty { return [] }
    var lines = [line("workers/: \(workers.count) \(workers.count == 1 ? "worker" : "workers")", .bold)]
    for worker in workers.prefix(Self.mostWorkers) {
      lines.append(line("  \(worker.name)  \(remark(worker))", worker.isAlive ? nil : .yellow))
      for wait in worker.report?.waits ?? [] {
        lines.append(line("    waits: \(escaped(wait.cause)): \(escaped(wait.reason))", .yellow))
      }
    }
    return lines + more(workers.count - Self.mostWorkers)
  }

  private func remark(_ worker: WorkerStatus) -> String {
    let now = snapshot.time
    var parts: [String] = []
    if !worker.isAlive { parts.append("silent for \(shortDuration(max(0, now.seconds - worker.beat.seconds)))") }
    if let report = worker.report {
      parts.append("runs \(jobCount(report.runs))")
      parts.append("started \(shortDuration(max(0, now.seconds - report.started.seconds))) ago")
    }
    return parts.joined(separator: ", ")
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

/// What a line of the table is about, and can be selected for: a job or a standing order.
package struct TableSubject: Hashable, Sendable {
  /// The job's name, without its worker's.
  package let name: FileName
  package let directory: Directory
  /// Of its file; nil if that was not looked at.
  package let inode: UInt64?

  package init(_ name: FileName, in directory: Directory, inode: UInt64? = nil) {
    (self.name, self.directory, self.inode) = (name, directory, inode)
  }
}

/// A job with its remark, a heading, or another line of the table.
package struct TableRow: Sendable {
  /// As wide as the terminal at most.
  package var lines: [StyledLine]
  package var subject: TableSubject?
}

extension JobStatus { var subject: TableSubject { TableSubject(name, in: directory, inode: inode) } }

extension OrderStatus {
  var subject: TableSubject {
    TableSubject(name, in: state == .waiting ? .standing : state.usualDirectory, inode: inode)
  }
}
