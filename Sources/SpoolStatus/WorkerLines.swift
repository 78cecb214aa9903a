internal import Spool

/// The workers as lines of a table. Pure.
struct WorkerLines {
  let snapshot: SpoolSnapshot
  let look: Look
  let width: Int

  /// The maximum number of workers to list.
  private static let most = 20

  /// A heading, a line for each worker, and one for each reason why jobs wait; empty if there is none.
  var lines: [StyledLine] {
    let workers = snapshot.workers
    if workers.isEmpty { return [] }
    var lines = [line("workers (\(workers.count))", .bold)]
    for worker in workers.prefix(Self.most) {
      lines.append(line("  \(worker.name)  \(remark(worker))", worker.isAlive ? nil : .yellow))
      for wait in worker.report?.waits ?? [] {
        lines.append(line("    waits: \(escaped(wait.cause)): \(escaped(wait.reason))", .yellow))
      }
    }
    if workers.count > Self.most {
      lines.append(line("  \(look.ellipsis) and \(workers.count - Self.most) more", .faint))
    }
    return lines
  }

  private func line(_ text: String, _ ink: Ink? = nil) -> StyledLine {
    StyledLine(clipped(text, to: width, ellipsis: look.ellipsis), look, ink)
  }

  private func remark(_ worker: WorkerStatus) -> String {
    let now = snapshot.time
    var parts: [String] = []
    if !worker.isAlive { parts.append("silent for \(shortDuration(max(0, now.seconds - worker.beat.seconds)))") }
    if let report = worker.report {
      parts.append(report.runs == 1 ? "runs 1 job" : "runs \(report.runs) jobs")
      parts.append("started \(shortDuration(max(0, now.seconds - report.started.seconds))) ago")
    }
    return parts.joined(separator: ", ")
  }
}
