/// Reads invariant 7 off a record: nothing is promised before it is durable, and a failed fsync is never retried.
struct CommitOrder {
  let scenario: Scenario
  let events: [CallEvent]
  var faults: [Fault] = []
  private var isLasting: Bool { faults.contains(where: \.isLasting) }

  func problems() -> [String] {
    scenario.jobs.filter { $0.end == .done }.flatMap { commitProblems($0) } + retryProblems()
  }

  // MARK: one job's commit

  private func commitProblems(_ job: Scenario.Job) -> [String] {
    // Names that a job may have got; its output tells which one it was only where there are several jobs.
    let name = job.output.split(separator: "/").last.map(String.init) ?? job.output
    let jobName = String(name.prefix { $0 != "." })
    guard scenario.isNamedByOutput else { return [] }
    let moves = events.indices.filter { isMove(events[$0], of: jobName, to: "done") }
    // A kill that another call of the process met, on another thread, may have left out that this one returned.
    guard let finish = moves.first(where: { succeeded(events[$0]) }) ?? moves.last(where: { !returned(events[$0]) })
    else {
      return ["\(jobName): no move to done/ in the record"]
    }
    return receiptProblems(jobName, name, finish) + durabilityProblems(finish)
  }

  /// A rename, or a link where there is no other way.
  private func isMove(_ event: CallEvent, of job: String, to state: String) -> Bool {
    event.phase == .begun && (event.kind == "rename" || event.kind == "link") && event.source.hasPrefix("cur/\(job):")
      && event.target == "\(state)/\(job)"
  }

  private func returned(_ begun: CallEvent) -> Bool { events.contains { $0.completes(begun) } }

  private func succeeded(_ begun: CallEvent) -> Bool {
    // Killed in between, it came to pass or it did not: then a later event tells.
    guard let end = events.first(where: { $0.completes(begun) }) else { return false }
    return end.note == "\(begun.inode)"
  }

  private func receiptProblems(_ job: String, _ output: String, _ finish: Int) -> [String] {
    let before = events[..<finish]
    let receipt = events[finish].inode
    let lastWrite = before.lastIndex { $0.inode == receipt && ["write", "truncate"].contains($0.kind) } ?? -1
    guard let syncing = sync(after: lastWrite, in: before, of: { $0.isSync && $0.inode == receipt }) else {
      return ["\(job): its receipt was not durable before the move to done/"]
    }
    return payloadProblems(job, output, before: syncing) + forgettingProblems(job, output, receipt, before)
  }

  /// Until the receipt is durable, the data's own name tells our payload from a stranger's file.
  private func forgettingProblems(_ job: String, _ output: String, _ receipt: UInt64, _ before: ArraySlice<CallEvent>)
    -> [String]
  {
    let published = before.firstIndex { $0.phase == .begun && $0.kind == "link" && $0.target == output[...] }
    guard let published,
      let forgotten = before[published...].firstIndex(where: {
        $0.phase == .begun && $0.kind == "unlink" && $0.path == "partial/\(job).part"
          && $0.inode == before[published].inode
      })
    else { return [] }
    let isReceiptDurable = sync(after: published, in: before[..<forgotten], of: { $0.isSync && $0.inode == receipt })
    return isReceiptDurable != nil ? [] : ["\(job): the data's name went before the receipt was durable"]
  }

  private func payloadProblems(_ job: String, _ output: String, before receipt: Int) -> [String] {
    let before = events[..<receipt]
    var problems: [String] = []
    let isPublication = { (event: CallEvent) in
      event.phase == .begun && ["link", "rename"].contains(event.kind) && event.target == output[...]
    }
    if let published = before.lastIndex(where: isPublication) {
      guard let directory = scenario.outputDirectories.last,
        sync(after: published, in: before, of: { $0.kind == "fsync" && isDirectory($0, directory) }) != nil
      else { return ["\(job): the receipt came before the fsync of the output's directory"] }
      problems += dataProblems(job, published)
    }
    for (index, event) in before.enumerated() where event.phase == .begun && event.kind == "mkdir" {
      guard let place = scenario.outputDirectories.firstIndex(of: event.path), place > 0 else { continue }
      let parent = scenario.outputDirectories[place - 1]
      if sync(after: index, in: before, of: { $0.kind == "fsync" && isDirectory($0, parent) }) == nil {
        problems.append(
          "\(job): the receipt came before the fsync of \(parent), which got the new directory \(event.path)")
      }
    }
    return problems
  }

  /// Where a call began, after that one and not before, that made durable what `isWanted` knows by the call for it alone, and that returned.
  /// What a syncfs(2) finds written when it begins counts as well.
  private func sync(after index: Int, in events: ArraySlice<CallEvent>, of isWanted: (CallEvent) -> Bool) -> Int? {
    events.indices.first { begun in
      let event = events[begun]
      guard begun > index, event.phase == .begun, isWanted(event) || event.kind == "syncfs" else { return false }
      return events[begun...].contains { $0.completes(event) }
    }
  }

  private func isDirectory(_ event: CallEvent, _ name: String) -> Bool {
    event.path == name || (scenario.isOnOtherFileSystem && event.path.hasPrefix("/"))
  }

  /// The data's way to the name: from the last write over its fdatasync to its first name in the output directory.
  private func dataProblems(_ job: String, _ published: Int) -> [String] {
    let before = events[..<published]
    // A copy is known by its temporary name, other data by its inode.
    let isCopy = scenario.isOnOtherFileSystem
    let linked =
      isCopy
      ? events[published]
      : before.last {
        $0.phase == .begun && $0.kind == "link" && $0.source.hasPrefix("/proc/")
          && events[published].source == $0.target
      }
        ?? events[published]
    let isData = { (event: CallEvent) in isCopy ? event.path == linked.source[...] : event.inode == linked.inode }
    let lastWrite = before.lastIndex { isData($0) && ["write", "truncate"].contains($0.kind) } ?? -1
    return sync(after: lastWrite, in: before, of: { isData($0) && $0.isSync }) != nil
      ? [] : ["\(job): its data was not durable before it got its name"]
  }

  /// Both directories of the last move, unless the process ended first.
  private func durabilityProblems(_ finish: Int) -> [String] {
    let process = events[finish].process
    let own = events[finish...].filter { $0.process == process }
    if own.contains(where: { $0.phase == .struck || $0.phase == .failed }) { return [] }
    if let last = own.last,
      last.phase == .begun || events.contains(where: { $0.phase == .struck && $0.process == process })
    {
      return []
    }
    return ["done", "cur"].filter { directory in
      sync(after: own.startIndex, in: own[...], of: { $0.kind == "fsync" && $0.path == directory }) == nil
    }.map { "no fsync of \($0)/ after the move to done/" }
  }

  // MARK: failed fsyncs

  /// A sync of data or of a job that succeeds on an inode on which one failed.
  private func retryProblems() -> [String] {
    var distrusted: Set<UInt64> = []
    var problems: [String] = []
    // Where nothing can be written any more, nothing can be noted either; but data can still be cut down to what is durable.
    if faults.contains(where: { $0.isLasting && $0.argument != "ENOSPC" && $0.argument != "EDQUOT" }) { return [] }
    for (index, event) in events.enumerated() where event.inode != 0 {
      let isFile = event.path.contains("/") && !event.path.hasPrefix("/")
      let isDistrusted = !isLasting || event.path.hasSuffix(".part")
      switch event.phase {
      case .failed where event.isSync && isFile && isDistrusted && couldBeTold(index): distrusted.insert(event.inode)
      case .returned where isLasting && event.kind == "truncate": distrusted.remove(event.inode)
      // Made anew, perhaps with the number of one that is gone.
      case .returned where event.kind == "create" && !existed(event): distrusted.remove(event.inode)
      case .returned where event.isSync && distrusted.contains(event.inode):
        problems.append("a failed fsync was retried on the same inode: \(event)")
      default: break
      }
    }
    return problems
  }

  /// Whether who heard of a failed sync lived to write another line: killed before it, nobody knows, and the kernel tells an error once
  /// (INTERNALS.md, what is not crash-proof).
  private func couldBeTold(_ failure: Int) -> Bool {
    guard faults.contains(where: \.isKill) else { return true }
    let later = events[(failure + 1)...].filter { $0.process == events[failure].process }
    return later.dropLast().contains { $0.phase == .returned && $0.kind == "write" && $0.path.hasPrefix("cur/") }
  }

  private func existed(_ created: CallEvent) -> Bool {
    let begun = events.last {
      $0.phase == .begun && $0.kind == "create" && $0.path == created.path && $0.process == created.process
    }
    return begun.map { $0.inode != 0 } ?? true
  }
}
