internal import ArgumentParser
internal import Glibc
internal import Spool
internal import SpoolLists
internal import SpoolWorker
internal import SystemPackage
internal import Transfer

struct Add: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Drops a job into a spool.",
    discussion: """
      URLs that end in different names are several files, a job each. Those of one name, and all with --output FILE, \
      are mirrors of one, in order of preference. The job is written to tmp and then renamed into \
      new, so workers see it only when it is complete. Prints the job's name. In a terminal, and when the job did not \
      get the name that it should have, says on standard error what was done. \
      With --from, drops a job for each entry of a list.
      """)

  @OptionGroup var spool: SpoolOption

  @Argument(help: ArgumentHelp("URL of a file.", valueName: JobKey.url.valueName)) var urls: [String] = []

  @OptionGroup var list: ListArguments

  @OptionGroup var job: JobOptions<AllJobKeys>

  @Flag(help: "Ask the server for the name of the file, and write it into the job.")
  var remoteName = false

  @Option(help: "The job's name. (default: the last name of the output, else of the URL)") var name: String?

  @Flag(help: "Drop nothing if the spool has the job already, in any state.") var new = false

  @Flag(help: "Wait until the job has come to its end, as wait does.") var wait = false

  func run() throws {
    // Each file that is made has a mode of its own.
    umask(0o027)
    if let file = list.from {
      if !urls.isEmpty { throw ExitStatus.refusal("either a list by --from, or URLs", by: "add") }
      if name != nil || remoteName || wait {
        throw ExitStatus.refusal("--name, --remote-name and --wait are for one file", by: "add")
      }
      let spool = try spool.open(for: .dropping)
      if new { try refuseUnreadable(spool, [JobName(like: "list")]) }
      return try list.command(file, job).run(in: spool, ifNew: new)
    }
    let (pieces, requests) = try GivenJob.checked(by: "add") {
      let pieces = try pieceList()
      return (pieces, try files().map { try jobRequest($0, pieces) })
    }
    let spool = try spool.open(for: .dropping)
    // A server is not asked by a scheme that the spool's worker refuses.
    try AllowedSchemes(of: spool).check(requests.flatMap { $0.urls.map(\.text) })
    let jobs = try GivenJob.checked(by: "add") {
      try requests.map { request in
        let request = remoteName ? try namedByServer(request, spool) : request
        return (request: request, name: try jobName(request))
      }
    }
    if new || wait { try refuseUnreadable(spool, jobs.map(\.name)) }
    let dropped = try ExitStatus.reporting("the job cannot be dropped") {
      var dropped: [(job: FileName, isNew: Bool)] = []
      for job in jobs {
        let drop = JobDrop(spool: spool, request: job.request, pieces: pieces, name: job.name)
        dropped.append(try drop.run(ifNew: new))
      }
      return dropped
    }
    if wait { return try JobsWaitedFor.wait(for: [(spool, dropped.map(\.job))]) }
    if dropped.contains(where: \.isNew) { try MissingWorker.tell(of: spool) }
  }

  /// Whoever may only drop jobs hears it before anything is dropped.
  private func refuseUnreadable(_ spool: Spool, _ names: [JobName]) throws {
    do throws(SpoolError) { for name in names { _ = try JobSearch(spool).places(of: name.fileName) } } catch {
      guard error.errno == .permissionDenied else { throw ExitStatus.inputOutput.after("\(error)") }
      throw ExitStatus.refusal("\(new ? "--new" : "--wait") needs a spool that you may read: \(error)", by: "add")
    }
  }

  /// The URLs of each file. wget and curl take several URLs for several files.
  private func files() throws -> [[String]] {
    let isNamedByURL = job.text("output").map { $0.ends(with: "/") } ?? true
    if urls.isEmpty || !isNamedByURL { return [urls] }
    var files: [[String]] = []
    var places: [ExactText?: Int] = [:]
    for (url, parts) in zip(urls, try GivenJob.parts(of: urls)) {
      let name = parts.lastPathSegment?.exact
      if places[name] == nil { files.append([]) }
      let place = places[name] ?? files.count - 1
      places[name] = place
      files[place].append(url)
    }
    let ofOne = job.given.map(\.key).filter { $0.scope == .job && !["output", "root"].contains($0.name) }.map(\.name)
    let option = (ofOne + (name == nil ? [] : ["name"]) + (remoteName ? ["remote-name"] : [])).first
    if files.count > 1, let option {
      throw ValidationError(
        "the URLs end in different names, and --\(option) is for one file: use --output PATH if they are its mirrors")
    }
    return files
  }

  /// The list in the file that `--pieces` names; nil without it, and for a list that the spool has already.
  private func pieceList() throws -> PieceList? {
    guard list.from == nil, let file = job.text(JobKey.pieces.name), PieceKey(file) == nil else { return nil }
    let text: [UInt8]
    do { text = try wholeFile(ListArguments.path(file), limit: PieceList.longest) } catch {
      throw ValidationError("--pieces: \(error)")
    }
    if let list = PieceList(text) { return list }
    throw ValidationError("--pieces: \(escaped(file)) is no list as `spoolrun verify --pieces` prints it")
  }

  /// The job's request, checked by the reader that a worker uses.
  private func jobRequest(_ urls: [String], _ pieces: PieceList?) throws -> JobRequest {
    try list.refuseWithoutFile()
    if urls.isEmpty, job.text(JobKey.resolve.name) == nil { throw ValidationError("no URL, and no list by --from") }
    let given = job.given.map { key, text in (key, key.name == JobKey.pieces.name ? pieces?.key.text ?? text : text) }
    let request = try JobRequest(urls: urls, given: given)
    _ = try request.readBack()
    try GivenJob.refuse(expired: request)
    let isNamedByURL = request.output?.isDirectory ?? true
    if remoteName {
      if urls.isEmpty { throw ValidationError("--remote-name asks a URL, and there is none") }
      if isNamedByURL { return request }
      throw ValidationError("--remote-name asks for the name that --output gives already: use --output DIR/")
    }
    if request.outputText(named: try GivenJob.parts(of: urls).first?.lastPathSegment) == nil {
      throw ValidationError("the URL does not end in a file name: use --output PATH, or --remote-name")
    }
    return request
  }

  /// The name of the job's file: `--name`, or else made of its output or URL.
  private func jobName(_ request: JobRequest) throws -> JobName {
    let last = request.urls.first.flatMap { try? URLParts($0.text) }?.lastPathSegment
    return try GivenJob.name(name) ?? JobName(like: request.outputText(named: last) ?? "")
  }

  private func namedByServer(_ request: JobRequest, _ spool: Spool) throws -> JobRequest {
    var named = request
    do {
      // The server may want to know who asks. Who may only drop jobs cannot read the defaults.
      let defaults = (try? spool.defaults()) ?? JobRequest()
      let network = try defaults.networkOptions(of: spool) { _ in }
      // The person has written the scheme. Redirects lead to http and https only.
      let options = TransferOptions(protocols: Set(Scheme.allCases), network: network)
      named.output = try RemoteName.output(of: request.inheriting(defaults), options) { Terminal.error($0) }
    } catch let failure as Failure {
      throw ExitStatus.givenUp.after("--remote-name: \(failure.label): \(failure.reason); nothing was dropped")
    } catch {
      throw ExitStatus.configuration.after("--remote-name: the spool's defaults: \(error); nothing was dropped")
    }
    return named
  }
}

/// Drops one checked job, and says what it did: the job's name on standard output, and the rest on standard error.
private struct JobDrop {
  let spool: Spool
  let request: JobRequest
  let pieces: PieceList?
  let name: JobName

  func run(ifNew: Bool) throws -> (job: FileName, isNew: Bool) {
    ifNew ? try Drops(spool).aloneOrTold { try dropIfNew() } : try drop()
  }

  private func dropIfNew() throws(SpoolError) -> (job: FileName, isNew: Bool) {
    guard let finding = try JobPresence(spool: spool).find(request, as: name) else { return try drop() }
    tell(finding)
    return (finding.job, false)
  }

  private func drop() throws(SpoolError) -> (job: FileName, isNew: Bool) {
    if let pieces { try PieceLists(spool).keep(pieces) }
    let dropped = try Drops(spool).drop(request.text, as: try freeName(), request.priority)
    tell(dropped)
    return (dropped.name.fileName, true)
  }

  /// The name that the job will have in `done`, too.
  private func freeName() throws(SpoolError) -> JobName {
    // A user may be one who may only drop jobs. The worker changes the name if it is taken.
    try orNil(JobSearch(spool).nameInNoState(like: name), on: .permissionDenied) ?? name
  }

  /// The rest is said in a terminal, and if the job got another name.
  private func tell(_ drop: (name: JobName, directory: Directory)) {
    let dropped = drop.name
    Terminal.print(name: dropped.fileName)
    guard dropped != name || Terminal.isErrorTerminal else { return }
    var why = ""
    if dropped != name {
      let taken = (try? JobSearch(spool).job(named: name)).flatMap { $0.1 }
      let isSame = taken.map { JobPresence.isSame(request, $0.request) } ?? false
      why = ", because the name \(name.display) is taken\(isSame ? " by a job for the same file (see --new)" : "")"
    }
    let output = JobPlan.output(of: request).map { "; output: \(escaped($0))" } ?? ""
    Terminal.error("\(dropped.display): \(drop.directory.rawValue)\(why)\(output)")
  }

  private func tell(_ finding: JobPresence.Finding) {
    let name = finding.job.display
    Terminal.print(name: finding.job)
    let doubt = finding.isSame ? "" : " with another URL or output; to drop this one too, use --name"
    Terminal.error("\(name): already there, as \(finding.place)\(doubt); nothing is dropped")
  }
}
