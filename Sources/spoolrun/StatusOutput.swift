internal import Glibc
internal import Spool
internal import SpoolStatus

/// What `status` prints.
struct StatusOutput {
  let json: Bool
  /// Whether to list all jobs.
  let all: Bool

  /// How many jobs of each state are read without --all.
  private static let mostRead = 1000

  /// The maximum number of jobs of each state to read.
  var readLimit: Int { all ? .max : Self.mostRead }

  private var hasWindow: Bool { !json && Terminal.isCapable(STDOUT_FILENO) }

  /// Whether a watch would take keys.
  var hasKeys: Bool { hasWindow && WatchTerminal.hasKeys }

  /// - Throws: ``SpoolError``.
  func watch(_ spool: Spool) throws(SpoolError) {
    let series = SnapshotSeries(spool, limit: readLimit)
    guard hasWindow else {
      var watch = StatusWatch(series: series) { text($0) + (json ? "" : "\n") }
      return try watch.run()
    }
    var session = try WatchSession(series)
    for line in try session.run() { Terminal.print(line.trimmed) }
  }

  /// One picture of the spool, with the newline at its end.
  func text(_ snapshot: SpoolSnapshot) -> String {
    if json { return snapshot.json(limit: readLimit) + "\n" }
    let size = Terminal.size(STDOUT_FILENO)
    // Lines for a pipe are not cut.
    let table = StatusTable(
      snapshot, Terminal.look(STDOUT_FILENO), width: size.map { $0.columns - 1 } ?? 10_000, limit: listLimit)
    var lines = table.lines
    // The prompt takes a row.
    if let size, lines.count >= size.rows { lines += [StyledLine(Terminal.look(STDOUT_FILENO))] + table.summary }
    return lines.map { $0.trimmed + "\n" }.joined()
  }

  /// Users look for running and failed jobs first.
  private func listLimit(_ state: JobState) -> Int {
    if all { return .max }
    switch state {
    case .running: return 50
    case .failed: return 20
    case .retrying, .interrupted, .paused, .waiting, .done: return 10
    }
  }
}
