internal import ArgumentParser
internal import Glibc
internal import Spool
internal import Transfer

struct Add: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add",
    abstract: "Drops a job into a spool.",
    discussion: """
      Several URLs are mirrors of one file, in order of preference. The job is written to tmp and then renamed into \
      new, so workers see it only when it is complete. Prints the job's name. In a terminal, and when the job did not \
      get the name that it should have, says on standard error what was done. \
      With --from, drops a job for each entry of a list.
      """)

  @OptionGroup var spool: SpoolOption

  @Argument(help: ArgumentHelp(JobKey.url.help, valueName: JobKey.url.valueName))
  var urls: [String] = []

  @OptionGroup var list: ListArguments

  @OptionGroup var job: JobOptions<AllJobKeys>

  @Flag(name: .long, help: "Ask the server for the name of the file (one HEAD request), and write it into the job.")
  var remoteName = false

  @Option(name: .long, help: "The job's name. (default: the last name of the output, else of the URL)")
  var name: String?

  @Flag(name: .long, help: "Drop nothing if the spool has the job already, in any state.")
  var new = false

  func run() throws {
    // Each file that is made has a mode of its own.
    umask(0o027)
    if let file = list.from {
      if !urls.isEmpty { throw ListArguments.refusal("either a list by --from, or URLs") }
      if name != nil || remoteName { throw ListArguments.refusal("--name and --remote-name are for one file") }
      return try list.command(file, job).run(in: spool.open(for: .dropping), ifNew: new)
    }
    let (request, name) = try checkedJob()
    let spool = try spool.open(for: .dropping)
    try JobDrop(spool: spool, request: request, name: name).run(ifNew: new)
  }

  /// Checks the job. In `validate()`, its errors would come before that of an unknown option.
  private func checkedJob() throws -> (request: JobRequest, name: JobName) {
    try Libcurl.loadOrExit()
    do {
      var request = try jobRequest()
      if remoteName { request = try namedByServer(request) }
      return (request, try jobName(request))
    } catch let error as ValidationError {
      // If it were thrown on from here, the usage of `spoolrun` would be printed with it, not that of `add`.
      Terminal.error("\(error.message); see `spoolrun add --help`")
      throw ExitStatus.usage.code
    }
  }

  /// The job's request, checked by the reader that a worker uses.
  private func jobRequest() throws -> JobRequest {
    try list.refuseWithoutFile()
    if urls.isEmpty, job.text(JobKey.resolve.name) == nil { throw ValidationError("no URL, and no list by --from") }
    let request: JobRequest
    do throws(Defect) {
      request = try JobRequest(urls: urls, given: job.given)
      _ = try request.readBack()
    } catch {
      throw ValidationError(error.reason)
    }
    if let expires = request.expires, expires <= .now() {
      throw ValidationError("--expires: \(expires) is past")
    }
    let parts = try urls.map { url in
      do throws(URLProblem) { return try URLParts(url) } catch { throw ValidationError("url: \(error.reason)") }
    }
    let isNamedByURL = request.output?.isDirectory ?? true
    if remoteName {
      if urls.isEmpty { throw ValidationError("--remote-name asks a URL, and there is none") }
      if isNamedByURL { return request }
      throw ValidationError("--remote-name asks for the name that --output gives already: use --output DIR/")
    }
    if request.outputText(named: parts.first?.lastPathSegment) == nil {
      throw ValidationError("the URL does not end in a file name: use --output PATH, or --remote-name")
    }
    // wget and curl take several URLs for several files. As mirrors, all but one would never be fetched.
    if isNamedByURL, Set(parts.map(\.lastPathSegment?.exact)).count > 1 {
      throw ValidationError(
        "the URLs end in different names: run `add` once per file, or use --output PATH if they are mirrors of one")
    }
    return request
  }
}
