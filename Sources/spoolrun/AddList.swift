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
  let plan: ListPlan

  /// - Throws: the exit status, after a message on stderr.
  func run(in spool: Spool) throws {
    let progress = ListProgress()
    defer { progress.finish() }
    do {
      let (jobs, repeated) = try check(spool, progress)
      let known = try drop(jobs, into: spool, progress)
      progress.finish()
      var account = "\(jobs.count - known) added"
      if known > 0 { account += ", \(known) already there" }
      if repeated > 0 { account += ", \(repeated) in the list twice" }
      Terminal.print(account)
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

  /// - Returns: the list's jobs, and how many of its entries ask for the same as an earlier one.
  private func check(_ spool: Spool, _ progress: ListProgress) throws -> (jobs: CheckedJobs, repeated: Int) {
    var plan = plan
    let list: ListReader
    do { list = try ListReader(path, options) } catch let error as SpoolError where error.call == .open {
      Terminal.error("\(error.path): \(error.errno)")
      throw ExitStatus.noSpool.code
    }
    let jobs = try CheckedJobs(spool)
    var repeated = 0
    while let listed = try list.next() {
      if let (text, name) = try plan.job(listed) {
        try jobs.append(text, as: name)
        progress.update { "checking \(title): \(jobs.count)" }
      } else {
        repeated += 1
      }
    }
    return (jobs, repeated)
  }

  /// - Returns: how many of the jobs are in the spool already.
  private func drop(_ jobs: CheckedJobs, into spool: Spool, _ progress: ListProgress) throws(SpoolError) -> Int {
    var known = try knownJobs(spool)
    var (done, found) = (0, 0)
    let group = try GroupDrop(spool)
    try jobs.forEach { (text, name) throws(SpoolError) in
      done += 1
      progress.update { "dropping \(done) of \(jobs.count), \(percentage(done, jobs.count))" }
      if let target = try Self.freeName(name, for: text, known) {
        try group.drop(text, as: target)
        if target != name { known?.insert(target) }
      } else {
        found += 1
      }
    }
    try group.finish()
    return found
  }

  /// nil where the caller may only drop.
  private func knownJobs(_ spool: Spool) throws(SpoolError) -> KnownJobs? {
    do throws(SpoolError) { return try KnownJobs(spool) } catch  where error.errno == .permissionDenied {
      Terminal.error("the spool cannot be read, so jobs that it has already are dropped again: \(error)")
      return nil
    }
  }

  /// `name`, with a number where another job has it; nil where the job is there already.
  private static func freeName(
    _ name: JobName, for text: [UInt8], _ known: KnownJobs?
  ) throws(SpoolError) -> JobName? {
    var target = name
    var number = 1
    while let other = try known?.job(named: target) {
      if other.request.asksForSameFile(as: text.withUnsafeBytes { JobText($0) }.request) { return nil }
      number += 1
      target = name.numbered(number)
    }
    return target
  }
}

private func percentage(_ part: Int, _ whole: Int) -> String { "\(part * 100 / max(1, whole))%" }
