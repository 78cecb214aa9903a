internal import ArgumentParser
internal import CLinux
internal import Glibc
internal import Spool
internal import SpoolWorker
internal import Transfer

/// The keys that options of `get` set. The place of the file is `-o`'s, its spool has neither keys for signatures
/// nor lists of pieces; the patience is that of the person, and the rate that of the whole command.
enum GetJobKeys: JobKeySelection {
  static let keys = JobKey.ofJobs.filter {
    !["url", "output", "root", "signature", "pieces", "patience", "limit-rate"].contains($0.name)
  }

  static func help(_ key: JobKey) -> String {
    switch key.name {
    case "mode": key.help.replacing("(default: 600)", with: "(default: by the umask)")
    case "overwrite": "Fetch a file again that is there, or replace another one of its name."
    case "connections": key.help.replacing("the worker's", with: "1, up to 4 for a single slow file: see spoolrun(1)")
    case "resolve": key.help.replacing("the spool's hook `resolve`", with: "your hook `resolve`")
    default: key.help
    }
  }
}

struct Get: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get", abstract: "Downloads files into the current directory, now.",
    discussion: """
      Each URL is one file; with -o FILE, several URLs are mirrors of it. The command stays until the files are \
      there, and tries again what may pass; a server that cannot be reached at first, only with --patience or --tries. \
      The same command continues an interrupted download, and fetches nothing if the file is there as it was fetched. \
      If another file has the name, it fails. What is not complete is in the directory .spoolrun beside the file, \
      which is removed when all is done.
      """)

  @Argument(help: ArgumentHelp("URL of a file.", valueName: "url")) var urls: [String] = []

  @OptionGroup var list: ListArguments

  @Option(
    name: .shortAndLong,
    help: ArgumentHelp("The file, or the directory/ for it. (default: the URL's last part, here)", valueName: "path"),
    completion: .file()) var output: String?

  @OptionGroup var job: JobOptions<GetJobKeys>

  @Option(
    help: ArgumentHelp(
      "Maximum bytes per second of all files together, such as 2M, or '2M 08:00-23:00, none'.", valueName: "rate"))
  var limitRate: String?

  @Option(
    name: .customLong("cacert"),
    help: ArgumentHelp("PEM file of the certificate authorities to trust. (default: the system's)", valueName: "file"))
  var caFile: String?

  @Flag(help: "Make one attempt, and exit with status 75 if another one may help.") var once = false

  @Option(
    help: ArgumentHelp(
      "Exit with status 75 after so long without a byte. (default: 15m, in a terminal without end)", valueName: "time"))
  var patience: String?

  @Flag(help: "Give files the time of modification that the server states.") var times = false

  @OptionGroup var login: LoginOptions

  @Option(help: ArgumentHelp("Show progress bars: auto, always or never.", valueName: "when"))
  var progress = ProgressMode.auto

  @Flag(name: .shortAndLong, help: "Log each step.") var verbose = false

  @Flag(
    name: [.customShort("q"), .customShort("s"), .customLong("silent"), .customLong("quiet")],
    help: "Print only what failed.") var quiet = false

  @Option(
    help: ArgumentHelp("The spool for the jobs. (default: .spoolrun beside the file)", valueName: "spool"),
    completion: .directory) var spool: String?

  func validate() throws {
    _ = try seconds(of: "--patience", patience)
    var options = WorkerOptions()
    do throws(Defect) { try options.setLimitRate(limitRate) } catch {
      throw ValidationError("--limit-rate \(error.reason)")
    }
    if output?.isEmpty ?? false { throw ValidationError("--output needs the name of a file or directory") }
    if once, patience != nil { throw ValidationError("--once and --patience cannot be used together") }
  }

  mutating func run() throws {
    let location = try PersonalSpool.become(ownerOf: self.spool)
    // Its mistakes are told before anything is asked for.
    let urls = try login.added(to: urls)
    if spool != nil, urls.isEmpty, list.from == nil, job.text(JobKey.resolve.name) == nil {
      throw ExitStatus.refusal("--spool needs the URLs again: without them, `get` goes on with what is here", by: "get")
    }
    try fetchList(location)
    let items = try GetPlan(urls: urls, list: list, output: output, given: job.given).items()
    let status = try fetch(items, location)
    if status != .success { throw status.code }
  }

  /// Fetches a list that `--from` names by its URL to where its files go, which are below its URL.
  private mutating func fetchList(_ location: String) throws {
    let isPlace = output.map { $0.ends(with: "/") || isDirectory($0) } ?? true
    // What is wrong with the other arguments is said of a list in a file, too.
    guard list.isRemote, let url = list.from, urls.isEmpty, isPlace,
      !job.given.contains(where: { $0.key.scope == .job })
    else { return }
    var fetched = list
    list = try ListArguments.parse([])
    // The type is that of the list's files. What else is given holds for the list, too.
    let given = job.given.filter { $0.key.name != "type" }
    let items = try GetPlan(urls: [url], list: list, output: output, given: given).items()
    let status = try fetch(items, location)
    if status != .success { throw status.code }
    // It may have been done meanwhile.
    if StopSignals.last != 0 { throw ExitStatus.waiting.after("stopped; the same command fetches the list's files") }
    let place = URLText(url).place
    fetched.base = fetched.base ?? place.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(place[...$0]) }
    // "-" would be standard input.
    fetched.from = items[0].shown == "-" ? "./-" : items[0].shown
    list = fetched
  }

  /// - Parameter items: of one directory.
  /// - Parameter location: of the person's own spool, and of the records.
  func fetch(_ items: [GetItem], _ location: String) throws -> ExitStatus {
    var items = items
    // What was asked for earlier, or by a list, stays to be tried again.
    let areTyped = list.from == nil && items.allSatisfy { $0.known == nil && $0.again == nil }
    let mask = umask(0o077)
    // As they were: a signal ends the command as soon as it looks at other items.
    var signalMask = sigset_t()
    sigprocmask(SIG_BLOCK, nil, &signalMask)
    defer {
      umask(mask)
      sigprocmask(SIG_SETMASK, &signalMask, nil)
    }
    let place = try spool.map { try GetSpool.named($0) } ?? GetSpool.own(for: items, location)
    let status = try ExitStatus.reporting(escaped(place.spool.location)) {
      var (mistakes, found): ([JobName], [JobName]) = ([], [])
      defer {
        do throws(SpoolError) { try place.finish(mistakes, found: found) } catch {
          Terminal.error("\(escaped(place.spool.location)) cannot be removed: \(error)", .warning)
        }
      }
      let options = try workerOptions(place, isAlone: items.count == 1)
      if options.defaults.mode == nil {
        for index in items.indices { items[index].usualMode = PayloadMode(umask: mask) }
      }
      try place.recognise(&items)
      let known = try order(items, in: place)
      // Until here a signal ends the command; the next one removes what it has left.
      let signals = try ExitStatus.reporting("cannot watch for signals") { try Terminal.stopSignals() }
      defer { close(signals) }
      let run = GetRun(
        items, in: place.spool, options, signals: signals, progress,
        setsTimes: times, verbose ? .steps : quiet ? .failures : .results)
      let ends = try run.run(known)
      if areTyped { mistakes = zip(items, ends).filter { $1.isMistake }.map(\.0.job) }
      found = zip(items, ends).filter { $1 == .isThere }.map(\.0.job)
      return GetEnd.worst(ends)
    }
    // A shell ends its loop only if the command dies of ^C.
    if StopSignals.last == SIGINT, Terminal.isErrorTerminal { spoolrun_die_of(SIGINT) }
    return status
  }

  /// - Returns: how the items ended for which nothing was ordered, by their number.
  private func order(_ items: [GetItem], in place: GetSpool) throws -> [Int: GetEnd] {
    var ends: [Int: GetEnd] = [:]
    let roots = NamedOutputRoots(place.spool)
    let orders = items.map { GetOrder(place, $0, roots) }
    for (number, order) in orders.enumerated() { ends[number] = try order.look() }
    try Drops(place.spool).alone {
      var missing: [(text: String, name: JobName)] = []
      for (number, order) in orders.enumerated() where ends[number] == nil {
        ends[number] = try order.place(or: &missing)
      }
      try Drops(place.spool).drop(missing)
    }
    return ends
  }

  private func workerOptions(_ place: GetSpool, isAlone: Bool) throws -> WorkerOptions {
    var options = WorkerOptions()
    options.fileSystem = place.traits
    // The person has written the scheme. Redirects lead to http and https only.
    options.protocols = Set(Scheme.allCases)
    options.userAgent = "spoolrun/\(Spoolrun.configuration.version)"
    try options.setLimitRate(limitRate)
    options.endsWhenDone = !once
    options.countsEachFailure = job.text("attempts") != nil
    options.expectsMistakes = patience == nil && !options.countsEachFailure
    // As many as a list would have at first.
    if isAlone { options.connectionsIfSlow = ServerNote.firstTransfers }
    let patience = patience.flatMap { duration($0) } ?? (Terminal.isErrorTerminal ? nil : 900)
    options.longestStandstill = patience.map { Int64($0) * 1000 }
    try options.takeDefaults(of: place.spool, authorities: caFile, login.keys)
    try options.prepareSharing(of: place.spool, isVerbose: verbose)
    _ = spoolrun_raise_descriptor_limit(UInt64(options.mostDescriptors))
    return options
  }
}
