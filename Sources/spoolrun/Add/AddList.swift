internal import ArgumentParser
internal import Spool
internal import SpoolLists
internal import SpoolStatus
internal import SpoolWorker
internal import SystemPackage
internal import Transfer

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
  /// The file with the list's signature, or ``JobRequest/inlineSignature``; nil to take the list as it is.
  let signature: String?

  /// Bytes of a list that is signed, as a worker has it.
  private static let longestSigned = 64 << 20

  private struct Account {
    var added = 0
    var known = 0
    var taken = 0
    /// An earlier entry of the list asks for the same.
    var repeated = 0
    var leftOut = 0
    /// Those among the jobs that got other names than they want, by their position, because others of the list want
    /// the same.
    var marked: Set<Int> = []
    /// How many of the added ones did not get the name that they want, and one of these.
    var renamed = (count: 0, example: "")

    var text: String {
      let others = [
        (known, "already there"), (taken, "skipped because another job has the name"), (repeated, "in the list twice"),
        (leftOut, "left out"),
      ]
      return "\(added) added" + others.filter { $0.0 > 0 }.map { ", \($0) \($1)" }.joined()
    }
  }

  func run(in spool: Spool, ifNew: Bool) throws {
    do {
      let account = try ExitStatus.reporting("the jobs cannot be dropped") {
        let account = try add(to: spool, ifNew: ifNew)
        Terminal.print(account.text)
        return account
      }
      if account.added > 0 { try MissingWorker.tell(of: spool) }
      if account.renamed.count > 0 {
        Terminal.error(
          "\(account.renamed.count) of them have a mark in their names, such as \(account.renamed.example), because "
            + "others have the same: `ls \(ShellWords.quoted(spool.location + "/new"))` shows them", .info)
      }
    } catch let problems as ListProblems {
      ListComplaint(title: title, problems: problems).refuse(leavesOut: options.ignoresUnknown, "nothing is dropped")
      throw ExitStatus.usage.code
    } catch let defect as Defect {
      throw ExitStatus.usage.after(
        "\(title)\(defect.line.map { ":\($0)" } ?? ""): \(defect.reason); nothing is dropped")
    } catch let failure as Failure {
      throw ExitStatus.givenUp.after("\(title): \(failure.label): \(failure.reason); nothing is dropped")
    }
  }

  private func add(to spool: Spool, ifNew: Bool) throws -> Account {
    var progress = ProgressLine()
    defer { progress.erase() }
    var account = Account()
    let jobs = try check(spool, &account, &progress)
    try Drops(spool).aloneOrTold {
      var presence = try ListPresence(spool, ifNew: ifNew)
      try drop(jobs, spool, &presence, &account, &progress)
    }
    return account
  }

  /// - Returns: the jobs with names of their own. What it took to find these is not in memory any more.
  private func check(_ spool: Spool, _ account: inout Account, _ progress: inout ProgressLine) throws -> CheckedJobs {
    let schemes = AllowedSchemes(of: spool)
    try schemes.check(options.base.map { ["\($0)x"] } ?? [])
    var request = request
    let list: ListReader
    do {
      list = try signature.map { try signed($0, spool, &request) } ?? ListReader(path, options)
    } catch let error as SpoolError where error.call == .open {
      throw ExitStatus.noSpool.after("\(error.path): \(error.errno)")
    }
    var plan = ListPlan(request, directory: directory, schemes: schemes)
    let jobs = try CheckedJobs(spool)
    var isBarred = false
    let tally = try plan.read(
      list, leavesOut: options.ignoresUnknown, keepPieces: { try keep($0, in: spool, &isBarred) }
    ) { job in
      try jobs.append(job)
      progress.update("checking \(title): \(jobs.count)")
    }
    (account.repeated, account.leftOut) = (tally.repeated, tally.problems.count)
    progress.erase()
    ListComplaint(title: title, problems: tally.problems).tellWhatIsLeftOut()
    return try settle(jobs, &plan, spool, &account, &progress)
  }

  /// Puts a list of pieces into the spool, if this user may.
  private func keep(_ list: PieceList, in spool: Spool, _ isBarred: inout Bool) throws(SpoolError) -> Bool {
    if isBarred { return false }
    do throws(SpoolError) { try PieceLists(spool).keep(list) } catch  where error.errno == .permissionDenied {
      isBarred = true
      Terminal.error("lists of pieces are left out: only the spool's owner can keep them: \(error)", .warning)
    }
    return !isBarred
  }

  /// Reads the list once, has its signature checked, and takes what was checked.
  private func signed(_ signature: String, _ spool: Spool, _ request: inout JobRequest) throws -> ListReader {
    let bytes = try wholeFile(path, limit: Self.longestSigned)
    let isInline = signature == JobRequest.inlineSignature
    let own = isInline ? nil : try wholeFile(ListArguments.path(signature), limit: SignatureCheck.longest)
    let file = try ScratchFile(spool)
    try file.write(bytes, at: 0)
    let (list, signer) = try SignatureCheck(spool).signed(file, own)
    request.signedBy = signer.name
    var options = options
    options.name = options.name ?? path.map { Array($0.split(separator: 0x2F).last ?? []) }
    return try ListReader(contents: isInline ? list.contents(limit: Self.longestSigned) : bytes, options)
  }

  private func settle(
    _ jobs: CheckedJobs, _ plan: inout ListPlan, _ spool: Spool, _ account: inout Account,
    _ progress: inout ProgressLine
  ) throws -> CheckedJobs {
    guard plan.isContested else { return jobs }
    let settled = try CheckedJobs(spool)
    try jobs.rewind()
    while let job = try jobs.next() {
      progress.update(
        "naming \(settled.count) of \(jobs.count), \(percentage(UInt64(settled.count), of: UInt64(jobs.count)))%")
      let own = try plan.settle(job)
      if own != nil { account.marked.insert(settled.count) }
      try settled.append(own ?? job)
    }
    return settled
  }

  private func drop(
    _ jobs: CheckedJobs, _ spool: Spool, _ presence: inout ListPresence, _ account: inout Account,
    _ progress: inout ProgressLine
  ) throws(SpoolError) {
    let group = try GroupDrop(spool)
    try jobs.rewind()
    var done = 0
    while let job = try jobs.next() {
      done += 1
      progress.update("dropping \(done) of \(jobs.count), \(percentage(UInt64(done), of: UInt64(jobs.count)))%")
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

extension ListFormat: ExpressibleByArgument {}

struct ListArguments: ParsableArguments {
  @Option(
    help: ArgumentHelp("Download each entry of a list; - for standard input.", valueName: "file"), completion: .file())
  var from: String?

  @Option(help: ArgumentHelp("The list's format. (default: by its looks)", valueName: "format")) var format: ListFormat?

  @Option(help: ArgumentHelp("The URL that the files of a list of checksums are below.", valueName: "url"))
  var base: String?

  @Flag(help: "Skip lines and options of a list that have no meaning here, instead of refusing the list.")
  var ignoreUnknown = false

  /// Whether ``from`` is a URL. Only `get` fetches a list itself.
  var isRemote: Bool { from?.utf8.contains("://".utf8) ?? false }

  private func refuseURL() throws {
    guard isRemote, let from else { return }
    let url = shownURL(from)
    let name = url.utf8.reversed().prefix { $0 != 0x2F }.count
    if name == 0 {
      throw ValidationError("--from takes a file: fetch the list by `spoolrun get -o FILE \(ShellWords.quoted(url))`")
    }
    let (base, list) = (
      ShellWords.quoted(Array(url.utf8.dropLast(name))), ShellWords.quoted(Array(url.utf8.suffix(name)))
    )
    throw ValidationError(
      "--from takes a file: fetch it by `spoolrun get \(ShellWords.quoted(url))`, and say `--from \(list)`, of a list "
        + "of checksums with `--base \(base)`; or watch it with `subscribe`")
  }

  /// Refuses options that mean nothing without a list.
  func refuseWithoutFile() throws {
    if format != nil || base != nil || ignoreUnknown {
      throw ValidationError("--format, --base and --ignore-unknown are for a list: add --from FILE")
    }
  }

  func command(_ file: String, _ job: JobOptions<AllJobKeys>) throws -> AddList {
    try GivenJob.checked(by: "add") {
      try refuseURL()
      var request = JobRequest()
      for (key, text) in job.given where !["output", JobKey.signature.name].contains(key.name) {
        if key.scope == .job, key.name != "root" {
          throw ValidationError("--\(key.name) belongs to one file: it cannot be given for a list")
        }
        try request.set(key, text)
      }
      return AddList(
        title: Self.title(file), path: Self.path(file), options: try options(), request: request,
        directory: try job.text("output").map(Self.directory), signature: job.text(JobKey.signature.name))
    }
  }

  static func title(_ file: String) -> String { path(file).map { escaped($0) } ?? "standard input" }

  /// nil for standard input.
  static func path(_ file: String) -> [UInt8]? { file == "-" ? nil : RawArguments.bytes(of: [file])[0] }

  func options() throws -> ListOptions {
    ListOptions(format: format, base: try base.map(Self.checked), ignoresUnknown: ignoreUnknown)
  }

  /// The URL that files are below.
  private static func checked(_ base: String) throws -> String {
    if base.prefix(before: "?#").endIndex < base.endIndex {
      throw ValidationError("--base: must end in a path, not in a query or fragment")
    }
    // A directory of an FTP server is no URL of a file.
    do throws(URLProblem) { _ = try URLParts(base.ends(with: "/") ? base + "x" : base) } catch {
      throw ValidationError("--base: \(error.reason)")
    }
    return base
  }

  private static func directory(_ text: String) throws -> String {
    guard text.ends(with: "/"), text != "/" else {
      throw ValidationError("--output must be a directory for a list, with a slash at the end, such as sets/")
    }
    let path = String(Substring(text.utf8.dropLast()))
    if let reason = OutputPath.defect(of: path) { throw ValidationError("--output: \(reason)") }
    return path
  }
}

/// What to say of the lines of a list that cannot be used.
struct ListComplaint {
  let title: String
  let problems: ListProblems

  /// A line for each reason: `list:3,7: reason`.
  private var reasons: [String] {
    var reasons: [(text: String, lines: [Int])] = []
    for defect in problems.named {
      let lines = defect.line.map { [$0] } ?? []
      if let known = reasons.firstIndex(where: { $0.text == defect.reason }) {
        reasons[known].lines += lines
      } else {
        reasons.append((defect.reason, lines))
      }
    }
    return reasons.map { text, lines in
      "\(title)\(lines.isEmpty ? "" : ":")\(lines.map { "\($0)" }.joined(separator: ",")): \(text)"
    }
  }

  /// - Parameter leavesOut: whether what cannot be used is left out: then nothing is left.
  func refuse(leavesOut: Bool, _ consequence: String) {
    if problems.count == 1 {
      return Terminal.error("\(reasons[0]);\(leavesOut ? "" : " --ignore-unknown leaves it out;") \(consequence)")
    }
    for reason in reasons { Terminal.error(reason) }
    let more = problems.count > problems.named.count ? ", these and more" : ""
    let advice = leavesOut ? "nothing else is in it" : "--ignore-unknown leaves them out"
    Terminal.error("\(title): \(problems.count) entries cannot be used\(more); \(advice); \(consequence)")
  }

  /// Says that a list was taken without what cannot be used.
  func tellWhatIsLeftOut() {
    guard let first = reasons.first else { return }
    let count = problems.count
    Terminal.error(
      "\(first); \(count == 1 ? "this is left out" : "this and others are left out, \(count) in all")", .warning)
  }
}
