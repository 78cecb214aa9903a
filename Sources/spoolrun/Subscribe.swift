internal import ArgumentParser
internal import Glibc
internal import Spool
internal import SpoolWorker
internal import SystemPackage
internal import Transfer

/// The keys of a standing order that its jobs get.
enum OrderJobKeys: JobKeySelection {
  static let keys =
    JobKey.ofOrders
    + JobKey.ofJobs.filter {
      $0.scope == .jobAndDefaults || ["output", "root"].contains($0.name)
    }
}

struct Subscribe: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "subscribe",
    abstract: "Has new entries of a feed or list downloaded.",
    discussion: """
      Puts a standing order into the directory standing. When it is due, a worker looks at the list, and drops a job \
      for each entry that it has not seen before. Several URLs are mirrors of the list. Prints the order's name; \
      hold, release, retry (which checks it now) and cancel take this name.
      """)

  @OptionGroup var spool: SpoolOption

  @Argument(help: ArgumentHelp("URL of the feed or list; several are mirrors of it.", valueName: "url"))
  var urls: [String]

  @OptionGroup var job: JobOptions<OrderJobKeys>

  @Option(name: .long, help: "The order's name, with which those of its jobs begin. (default: made of the URL)")
  var name: String?

  private static let defaultEvery = "6h"

  func run() throws {
    umask(0o077)
    try Libcurl.loadOrExit()
    let (request, name) = try checkedOrder()
    let spool = try spool.open()
    try AllowedSchemes(of: spool).check(urls)
    do throws(SpoolError) {
      if let known = try spool.standingOrder(of: urls[0]) {
        let order = known.directory == .cur ? ClaimName(known.name)?.job.fileName ?? known.name : known.name
        Terminal.print(order.display)
        return Terminal.error("\(order.display): already there, as \(known.display); nothing is changed")
      }
      let order = try spool.subscribe(request.text, as: name)
      Terminal.print(order.display)
      guard order != name || Terminal.isErrorTerminal else { return }
      let why = order == name ? "" : ", because the name \(name.display) is taken"
      Terminal.error("\(order.display): new standing order\(why)")
    } catch {
      Terminal.error("the order cannot be put into standing: \(error)")
      throw ExitStatus(error).code
    }
  }

  private func checkedOrder() throws -> (request: JobRequest, name: JobName) {
    do {
      return try order()
    } catch let error as ValidationError {
      // If it were thrown on from here, the usage of `spoolrun` would be printed with it, not that of `subscribe`.
      Terminal.error("\(error.message); see `spoolrun subscribe --help`")
      throw ExitStatus.usage.code
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
    if let expires = request.expires, expires <= .now() { throw ValidationError("--expires: \(expires) is past") }
    let parts = try urls.map { url in
      do throws(URLProblem) { return try URLParts(url) } catch { throw ValidationError("url: \(error.reason)") }
    }
    guard let name else {
      let host = parts[0].host.split(at: "[]").joined()
      return (request, JobName(like: host + (parts[0].lastPathSegment.map { "-\($0)" } ?? "")))
    }
    let fileName = FileName(RawArguments.bytes(of: [name])[0])
    guard let job = JobName(fileName) else {
      throw ValidationError("--name: \(JobName.defect(of: fileName) ?? "its name starts with a dot")")
    }
    return (request, job)
  }
}
