internal import Spool

/// What was done lately, as lines of a table. Pure.
struct DoneLines {
  let snapshot: SpoolSnapshot
  let look: Look
  let width: Int

  /// A heading, and a line for each job; empty if there is none.
  var lines: [StyledLine] {
    let jobs = snapshot.recent ?? []
    if jobs.isEmpty { return [] }
    let names = jobs.map { fitted($0.name.display, to: max(8, width / 2), ellipsis: look.ellipsis) }
    let column = names.map { displayWidth($0) }.max() ?? 0
    return [StyledLine("done (\(snapshot.count(.done)))", look, .bold)]
      + zip(names, jobs).map { name, job in
        let text = "  \(padded(name, to: column))  \(remark(job))"
        return StyledLine(clipped(text, to: width, ellipsis: look.ellipsis), look)
      }
  }

  private func remark(_ job: DoneStatus) -> String {
    let figures = job.figures.map { "\($0.text), " } ?? ""
    return figures + "\(shortDuration(max(0, snapshot.time.seconds - job.time.seconds))) ago"
  }
}
