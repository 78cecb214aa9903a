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
    var parts: [String] = []
    if let size = job.size { parts.append(shortBytes(size)) }
    if let seconds = job.seconds, let fetched = job.fetched, fetched > 0 {
      let rate = seconds > 0 ? " (\(shortRate(Double(fetched) / Double(seconds))))" : ""
      parts.append("in \(shortDuration(seconds))\(rate)")
    }
    parts.append("\(shortDuration(max(0, snapshot.time.seconds - job.time.seconds))) ago")
    return parts.joined(separator: ", ").replacing(", in ", with: " in ")
  }
}
