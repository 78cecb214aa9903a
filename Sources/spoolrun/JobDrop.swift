internal import Spool
internal import SpoolWorker
internal import SystemPackage

/// Drops one checked job, and says what it did: the job's name on standard output, and the rest on standard error.
struct JobDrop {
  let spool: Spool
  let request: JobRequest
  /// The name that it should get.
  let name: JobName

  /// - Parameter ifNew: whether to drop nothing if the spool has the job already.
  /// - Throws: the exit status, after a message.
  func run(ifNew: Bool) throws {
    try AllowedSchemes(of: spool).check(request.urls.map(\.text))
    do {
      if ifNew { try spool.alone(within: nil) { try dropIfNew() } } else { try drop() }
    } catch let error as SpoolError {
      Terminal.error("the job cannot be dropped: \(error)")
      throw ExitStatus(error).code
    }
  }

  private func dropIfNew() throws(SpoolError) {
    if let finding = try JobPresence(spool: spool).find(request, as: name) { tell(finding) } else { try drop() }
  }

  private func drop() throws(SpoolError) { tell(try spool.drop(request.text, as: try freeName(), request.priority)) }

  /// The name that the job will have in `done`, too.
  private func freeName() throws(SpoolError) -> JobName {
    do throws(SpoolError) {
      return try spool.nameInNoState(like: name)
    } catch  where error.errno == .permissionDenied {
      // A user who may only drop jobs. The worker changes the name if it is taken.
      return name
    }
  }

  /// The rest is said in a terminal, and if the job got another name.
  private func tell(_ drop: (name: JobName, directory: Directory)) {
    let dropped = drop.name
    Terminal.print(dropped.display)
    guard dropped != name || Terminal.isErrorTerminal else { return }
    let why = dropped == name ? "" : ", because the name \(name.display) is taken"
    let output = JobPlan.output(of: request).map { "; output: \(escaped($0))" } ?? ""
    Terminal.error("\(dropped.display): \(drop.directory.rawValue)\(why)\(output)")
  }

  private func tell(_ finding: JobPresence.Finding) {
    let name = finding.job.display
    Terminal.print(name)
    let doubt = finding.isSame ? "" : " with another URL or output; to drop this one too, use --name"
    Terminal.error("\(name): already there, as \(finding.place)\(doubt); nothing is dropped")
  }
}
