/// Reads invariant 7 off a record: nothing is promised before it is durable, and a failed fsync is never retried.
struct CommitOrder {
  let scenario: Scenario
  let events: [CallEvent]

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
    return payloadProblems(job, output, before: syncing) + forgettingProblems(job, output, before)
  }

  /// Until the receipt is durable, the data's own name tells our payload from a stranger's file.
  private func forgettingProblems(_ job: String, _ output: String, _ before: ArraySlice<CallEvent>) -> [String] {
    let published = before.firstIndex { $0.phase == .begun && $0.kind == "link" && $0.target == output[...] }
    guard let published,
      let forgotten = before[published...].firstIndex(where: {
        $0.phase == .begun && $0.kind == "unlink" && $0.path == "partial/\(job).part"
          && $0.inode == before[published].inode
      })
    else { return [] }
    // The job may have got another inode since.
    let jobs = Set(before.filter { ["cur/\(job):", "tmp/\(job):"].contains(where: $0.path.hasPrefix) }.map(\.inode))
    let isReceiptDurable = jobs.contains { inode in
      let lastWrite = before[..<forgotten].lastIndex { $0.inode == inode && $0.kind == "write" } ?? published
      return sync(after: max(published, lastWrite), in: before[..<forgotten], of: { $0.isSync && $0.inode == inode })
        != nil
    }
    return isReceiptDurable ? [] : ["\(job): the data's name went before the receipt was durable"]
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
      if scenario.isOnOtherFileSystem { problems += copyProblems(job, published) }
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

  /// Where a call began, after that one and not before, that made durable what `isWanted` knows by the call for it
  /// alone, and that returned. What a syncfs(2) finds written when it begins counts as well.
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

  /// Two file systems keep no order: after a power cut, a copy that the journal doesn't know would be a stranger's
  /// file.
  private func copyProblems(_ job: String, _ published: Int) -> [String] {
    let before = events[..<published]
    let lastLine = before.lastIndex { event in
      event.phase == .begun && event.kind == "write"
        && ["cur/\(job):", "tmp/\(job):"].contains(where: event.path.hasPrefix)
    }
    guard let lastLine,
      sync(after: lastLine, in: before, of: { $0.isSync && $0.inode == events[lastLine].inode }) != nil
    else { return ["\(job): a copy got its name before the journal's line about it was durable"] }
    return []
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

  /// A sync of data or of a job that succeeds, though an earlier one failed on the inode and what that lost was neither
  /// written again nor cut off.
  private func retryProblems() -> [String] {
    var unsynced: [UInt64: [Range<Int64>]] = [:]
    var lost: [UInt64: [Range<Int64>]] = [:]
    var problems: [String] = []
    for event in events where event.inode != 0 {
      let inode = event.inode
      let isFile = event.path.contains("/") && !event.path.hasPrefix("/")
      if event.phase == .returned, let range = event.range {
        lost[inode] = lost[inode]?.flatMap { $0.without(range) }
        if event.kind == "write" { unsynced[inode, default: []].append(range) }
        continue
      }
      switch event.phase {
      case .failed where event.isSync && isFile: lost[inode, default: []] += unsynced[inode] ?? []
      // No room to record it: INTERNALS.md, what is not crash-proof.
      case .failed where event.kind == "write" && event.isForLackOfRoom: lost[inode] = nil
      case .returned where event.kind == "syncfs": unsynced = [:]
      // Made anew, perhaps with the number of one that is gone.
      case .returned where event.kind == "create" && !existed(event): (lost[inode], unsynced[inode]) = (nil, nil)
      case .returned where event.isSync:
        unsynced[inode] = nil
        if lost[inode]?.isEmpty == false { problems.append("a failed fsync was retried on the same inode: \(event)") }
      default: break
      }
    }
    return problems
  }

  private func existed(_ created: CallEvent) -> Bool {
    let begun = events.last {
      $0.phase == .begun && $0.kind == "create" && $0.path == created.path && $0.process == created.process
    }
    return begun.map { $0.inode != 0 } ?? true
  }
}

extension Range {
  /// What is left of it beside `other`.
  fileprivate func without(_ other: Range) -> [Range] {
    [
      lowerBound..<Swift.max(lowerBound, Swift.min(upperBound, other.lowerBound)),
      Swift.min(upperBound, Swift.max(lowerBound, other.upperBound))..<upperBound,
    ].filter { !$0.isEmpty }
  }
}
