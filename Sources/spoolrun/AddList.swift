internal import ArgumentParser
internal import Spool
internal import SpoolLists
internal import SystemPackage
internal import Transfer

extension ListFormat: ExpressibleByArgument {}

/// The options of `spoolrun add` for lists.
struct ListArguments: ParsableArguments {
  @Option(
    name: .long,
    help: ArgumentHelp("Drop a job for each entry of a list; - for standard input.", valueName: "file"),
    completion: .file())
  var from: String?

  @Option(name: .long, help: ArgumentHelp("The list's format. (default: by its looks)", valueName: "format"))
  var format: ListFormat?

  @Option(name: .long, help: ArgumentHelp("The URL that the files of a list of checksums are below.", valueName: "url"))
  var base: String?

  @Flag(name: .long, help: "Leave out what is not known of a list, instead of refusing it.")
  var ignoreUnknown = false

  /// - Throws: ``ValidationError`` where an option is given that means nothing without a list.
  func refuseWithoutFile() throws {
    if format != nil || base != nil || ignoreUnknown {
      throw ValidationError("--format, --base and --ignore-unknown are for a list: add --from FILE")
    }
  }
}

/// `spoolrun add --from`: reads and checks the whole list, then drops its jobs.
struct AddList {
  /// What messages call the list.
  private let title: String
  /// nil for standard input.
  private let path: [UInt8]?
  private let options: ListOptions
  private var plan: ListPlan

  /// - Throws: the exit status, after a message on stderr.
  init(_ file: String, _ command: Add) throws {
    let list = command.list
    path = file == "-" ? nil : RawArguments.bytes(of: [file])[0]
    title = path.map { escaped($0) } ?? "standard input"
    do {
      try Self.load()
      if !command.urls.isEmpty { throw ValidationError("either a list by --from, or URLs") }
      if command.remoteName { throw ValidationError("--remote-name asks for one file: it cannot be given for a list") }
      if command.name != nil { throw ValidationError("--name: the jobs of a list get their names from it") }
      var request = JobRequest()
      for (key, text) in command.job.given where key.name != "output" {
        if key.isPerJob, key.name != "root" {
          throw ValidationError("--\(key.name) belongs to one file: it cannot be given for a list")
        }
        do throws(Defect) { try request.set(key, text) } catch { throw ValidationError(error.reason) }
      }
      options = ListOptions(
        format: list.format, base: try list.base.map(Self.base), ignoresUnknown: list.ignoreUnknown)
      plan = ListPlan(request, directory: try command.job.text("output").map(Self.directory))
    } catch let error as ValidationError {
      // If it were thrown on from here, the usage of `spoolrun` would be printed with it, not that of `add`.
      Terminal.error("\(error.message); see `spoolrun add --help`")
      throw ExitStatus.usage.code
    }
  }

  private static func load() throws {
    do throws(TransferError) { try Libcurl.load() } catch {
      Terminal.error(error.description)
      throw ExitStatus.unavailable.code
    }
  }

  private static func base(_ text: String) throws -> String {
    do throws(URLProblem) { _ = try URLParts(text) } catch { throw ValidationError("--base: \(error.reason)") }
    if text.contains(where: { $0 == "?" || $0 == "#" }) {
      throw ValidationError("--base: must end in a path, not in a query or fragment")
    }
    return text
  }

  private static func directory(_ text: String) throws -> String {
    guard text.hasSuffix("/"), text != "/" else {
      throw ValidationError("--output: for a list it names a directory, with a slash behind, such as sets/")
    }
    let path = String(text.dropLast())
    if let reason = OutputPath.defect(of: path) { throw ValidationError("--output: \(reason)") }
    return path
  }

  /// - Throws: the exit status, after a message on stderr.
  func run(in option: SpoolOption) throws {
    let spool = try option.open()
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
