internal import ArgumentParser
internal import Glibc
internal import Spool
internal import Transfer

enum OrderJobKeys: JobKeySelection {
  static let keys =
    JobKey.ofOrders
    + JobKey.ofJobs.filter { $0.scope == .jobAndDefaults || ["output", "root", "signature"].contains($0.name) }
}

struct Subscribe: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "subscribe",
    abstract: "Has new entries of a feed or list downloaded.",
    discussion: """
      Puts a subscription into the directory standing. When it is due, a worker looks at the list, and drops a job \
      for each entry that it has not seen before. Several URLs are mirrors of the list. Prints the order's name; \
      hold, release, retry (which checks it now) and cancel take this name.
      """)

  @OptionGroup var spool: SpoolOption

  @Argument(help: ArgumentHelp("URL of the feed or list; several are mirrors of it.", valueName: "url"))
  var urls: [String]

  @OptionGroup var job: JobOptions<OrderJobKeys>

  @Option(help: "The order's name, with which those of its jobs begin. (default: made of the URL)")
  var name: String?

  private static let defaultEvery = "6h"

  func run() throws {
    umask(0o077)
    let (request, name) = try GivenJob.checked(by: "subscribe", order)
    let spool = try spool.open()
    try AllowedSchemes(of: spool).check(urls)
    do throws(SpoolError) {
      if let known = try JobSearch(spool).standingOrder(of: urls[0]) {
        let order = known.directory == .cur ? ClaimName(known.name)?.job.fileName ?? known.name : known.name
        Terminal.print(order.display)
        return Terminal.error("\(order.display): already there, as \(known.display); nothing is changed")
      }
      let order = try Drops(spool).subscribe(request.text, as: name)
      Terminal.print(order.display)
      guard order != name || Terminal.isErrorTerminal else { return }
      let why = order == name ? "" : ", because the name \(name.display) is taken"
      Terminal.error("\(order.display): new subscription\(why)")
      try MissingWorker.tell(of: spool)
    } catch {
      throw ExitStatus.failure(error, "the order cannot be put into standing")
    }
  }

  private func order() throws -> (request: JobRequest, name: JobName) {
    var request: JobRequest
    do throws(Defect) {
      request = try JobRequest(urls: urls, given: job.given)
      if !request.isStandingOrder { try request.set(JobKey.ofOrders[0], Self.defaultEvery) }
      _ = try request.readBack()
      if let defect = request.orderDefect { throw defect }
    } catch {
      throw ValidationError(error.reason)
    }
    try GivenJob.refuse(expired: request)
    let parts = try GivenJob.parts(of: urls)[0]
    let usual = parts.host.split(at: "[]").joined() + (parts.lastPathSegment.map { "-\($0)" } ?? "")
    return (request, try GivenJob.name(name) ?? JobName(like: usual))
  }
}
