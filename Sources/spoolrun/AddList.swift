internal import Spool
internal import SpoolLists
internal import SystemPackage

/// `spoolrun add --from`: reads and checks the whole list, then drops its jobs.
struct AddList {
  /// What messages call the list.
  let title: String
  /// nil for standard input.
  let path: [UInt8]?
  let options: ListOptions
  /// What holds for all jobs of the list that don't set it.
  let request: JobRequest
  /// The directory below the output root for all of them, without a slash behind; nil for none.
  let directory: String?

  /// What became of the entries.
  private struct Account {
    var added = 0
    var known = 0
    /// Another job has the name.
    var taken = 0
    /// An earlier entry of the list asks for the same.
    var repeated = 0
    /// They cannot be used.
    var leftOut = 0
    /// Those among the jobs that got other names than they want, by their position, because others of the list want
    /// the same.
    var marked: Set<Int> = []
    /// How many of the added ones did not get the name that they want, and one of these.
    var renamed = (count: 0, example: "")

    var text: String {
      var parts = ["\(added) added"]
      if known > 0 { parts.append("\(known) already there") }
      if taken > 0 { parts.append("\(taken) skipped because another job has the name") }
      if repeated > 0 { parts.append("\(repeated) in the list twice") }
      if leftOut > 0 { parts.append("\(leftOut) left out") }
      return parts.joined(separator: ", ")
    }
  }

  /// - Parameter ifNew: whether to skip each job that the spool has already, as `--new` says.
  /// - Throws: the exit status, after a message on stderr.
  func run(in spool: Spool, ifNew: Bool) throws {
    let progress = ListProgress()
    defer { progress.finish() }
    do {
      var account = Account()
      let (jobs, plan) = try check(spool, &account, progress)
      try spool.alone(within: nil, wait: { progress.update { "waiting until another command has added its jobs" } }) {
        var presence = try ListPresence(spool, ifNew: ifNew)
        try drop(try settle(jobs, plan, spool, presence, &account, progress), spool, &presence, &account, progress)
      }
      progress.finish()
      Terminal.print(account.text)
      if account.renamed.count > 0 {
        Terminal.error(
          "\(account.renamed.count) of them have a mark in their names, such as \(account.renamed.example), because "
            + "others have the same: `ls \(escaped(spool.location))/new` shows them", .info)
      }
    } catch let problems as ListProblems {
      progress.finish()
      ListComplaint(title: title, problems: problems).refuse(leavesOut: options.ignoresUnknown, "nothing is dropped")
      throw ExitStatus.usage.code
    } catch let defect as Defect {
      progress.finish()
      Terminal.error("\(title)\(defect.line.map { ":\($0)" } ?? ""): \(defect.reason); nothing is dropped")
      throw ExitStatus.usage.code
    } catch let error as SpoolError {
      progress.finish()
      Terminal.error("the jobs cannot be dropped: \(error)")
      throw ExitStatus(error).code
    }
  }

  private func check(
    _ spool: Spool, _ account: inout Account, _ progress: ListProgress
  ) throws -> (jobs: CheckedJobs, plan: ListPlan) {
    let schemes = AllowedSchemes(of: spool)
    try schemes.check(options.base.map { ["\($0)x"] } ?? [])
    var plan = ListPlan(request, directory: directory, schemes: schemes)
    let list: ListReader
    do { list = try ListReader(path, options) } catch let error as SpoolError where error.call == .open {
      Terminal.error("\(error.path): \(error.errno)")
      throw ExitStatus.noSpool.code
    }
    let jobs = try CheckedJobs(spool)
    let tally = try plan.read(list, leavesOut: options.ignoresUnknown) { job in
      try jobs.append(job)
      progress.update { "checking \(title): \(jobs.count)" }
    }
    (account.repeated, account.leftOut) = (tally.repeated, tally.problems.count)
    progress.finish()
    ListComplaint(title: title, problems: tally.problems).tellWhatIsLeftOut()
    return (jobs, plan)
  }

  /// - Returns: the jobs with names of their own, without those that the spool has under their earlier names.
  private func settle(
    _ jobs: CheckedJobs, _ plan: ListPlan, _ spool: Spool, _ presence: ListPresence, _ account: inout Account,
    _ progress: ListProgress
  ) throws -> CheckedJobs {
    var settling = ListSettling(plan)
    guard settling.isNeeded else { return jobs }
    let settled = try CheckedJobs(spool)
    var reader = try jobs.reader()
    while let job = try reader.next() {
      progress.update { "naming \(settled.count) of \(jobs.count), \(percentage(settled.count, jobs.count))" }
      let (own, earlier) = try settling.settle(job)
      if let earlier {
        if try presence.has(earlier) {
          account.known += 1
          continue
        }
        account.marked.insert(settled.count)
      }
      try settled.append(own)
    }
    return settled
  }

  private func drop(
    _ jobs: CheckedJobs, _ spool: Spool, _ presence: inout ListPresence, _ account: inout Account,
    _ progress: ListProgress
  ) throws(SpoolError) {
    let group = try GroupDrop(spool)
    var reader = try jobs.reader()
    var done = 0
    while let job = try reader.next() {
      done += 1
      progress.update { "dropping \(done) of \(jobs.count), \(percentage(done, jobs.count))" }
      switch try presence.finding(of: job) {
      case .free(let name):
        try group.drop(job.text, as: name)
        account.added += 1
        if account.marked.contains(done - 1) || name != job.name {
          account.renamed = (account.renamed.count + 1, name.display)
        }
      case .known: account.known += 1
      case .taken: account.taken += 1
      }
    }
    try group.finish()
  }
}

private func percentage(_ part: Int, _ whole: Int) -> String { "\(part * 100 / max(1, whole))%" }
