internal import ArgumentParser
internal import Glibc
internal import Spool
internal import SpoolStatus
internal import Transfer

enum OrderJobKeys: JobKeySelection {
  static let keys =
    JobKey.ofOrders
    + JobKey.ofJobs.filter { $0.scope == .jobAndDefaults || ["output", "root", "signature"].contains($0.name) }

  static func help(_ key: JobKey) -> String {
    switch key.name {
    case "output": "Directory for the files, with a slash at its end; of --entries file, also the file's path."
    case "signature": "URL of the list's signature, or inline."
    default: key.help
    }
  }
}

struct Subscribe: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "subscribe", abstract: "Has new entries of a feed or list downloaded.",
    discussion: """
      Puts a subscription into the directory standing. When it is due, a worker looks at the list, and drops a job \
      for each entry that it has not seen before. Several URLs are mirrors of the list. Prints the name of the \
      subscription; hold, release, retry (which checks it now) and cancel take this name.
      """)

  @OptionGroup var spool: SpoolOption

  @Argument(
    help: ArgumentHelp("URL of the feed or list, or more as mirrors of it; or a name of --list.", valueName: "url"))
  var urls: [String] = []

  @Flag(help: "List the subscriptions that come with spoolrun.") var list = false

  @OptionGroup var job: JobOptions<OrderJobKeys>

  @Option(help: "The subscription's name, with which those of its jobs begin. (default: made of the URL)") var name:
    String?

  private static let defaultEvery = "6h"

  func validate() throws { if list != urls.isEmpty { throw ValidationError("name a URL, or use --list alone") } }

  func run() throws {
    if list { return OfferedSubscription.all.forEach { Terminal.print("\(padded($0.name, to: 18))\($0.title)") } }
    umask(0o077)
    let (request, name) = try GivenJob.checked(by: "subscribe", order)
    let spool = try spool.open()
    try AllowedSchemes(of: spool).check(request.urls.map(\.text))
    try ExitStatus.reporting("the subscription cannot be put into standing") {
      let order: JobName? = try Drops(spool).aloneOrTold {
        if let known = try JobSearch(spool).standingOrder(of: request.urls[0].text) {
          if try tell(known, request, spool) { return nil }
          throw ExitStatus.givenUp.code
        }
        return try Drops(spool).subscribe(request.text, as: name)
      }
      guard let order else { return }
      Terminal.print(name: order.fileName)
      guard order != name || Terminal.isErrorTerminal else { return }
      let why = order == name ? "" : ", because the name \(name.display) is taken"
      let begins =
        request.standing.entries == .file || request.standing.first != nil
        ? "" : "; of the entries that are there, it takes the newest (--first all: all)"
      Terminal.error("\(order.display): new subscription\(why)\(begins)")
      try MissingWorker.tell(of: spool)
    }
  }

  /// - Returns: whether it asks for the same.
  private func tell(_ known: JobPlace, _ request: JobRequest, _ spool: Spool) throws(SpoolError) -> Bool {
    let name = known.job.display
    Terminal.print(name: known.job)
    let text = try JobSearch(spool).job(known.directory, known.name)
    let isSame = text.map { $0.request.text.exact == request.text.exact } ?? true
    let gesture = [Directory.failed: "retry", .hold: "release"][known.directory]
    func command(_ verb: String) -> String { ShellWords.command(verb, known.job, of: spool.location) }
    // Not to cancel it: that would lose what it has seen.
    let edited = gesture == nil ? Path(.hold, known.job) : Path(known.directory, known.name)
    var steps = isSame ? [] : ["edit \(ShellWords.quoted(Array("\(spool.location)/".utf8) + edited.bytes))"]
    if !isSame, gesture == nil { steps.insert(command("hold"), at: 0) }
    if gesture != nil || !isSame { steps.append(command(gesture ?? "release")) }
    let aim = isSame ? "have it checked" : "change it"
    let advice = steps.isEmpty ? "" : "; to \(aim): \(steps.joined(separator: ", "))"
    let other = isSame ? "" : ", with other options"
    Terminal.error("\(name): already there, as \(known.display)\(other); nothing is changed\(advice)")
    return isSame
  }

  private func order() throws -> (request: JobRequest, name: JobName) {
    let offered = OfferedSubscription.all.first { $0.name == self.urls[0] }
    if let offered, self.urls.count > 1 {
      throw ValidationError("\(offered.name) is a name of --list: one at a time, and no URLs with it")
    }
    let base = try offered?.request(without: job.given)
    let urls = base?.urls.map(\.text) ?? self.urls
    var request = try JobRequest(base ?? JobRequest(), urls: base == nil ? urls : [], given: job.given)
    if !request.isStandingOrder { try request.set(JobKey.ofOrders[0], Self.defaultEvery) }
    _ = try request.readBack()
    if let defect = request.orderDefect { throw defect }
    try GivenJob.refuse(expired: request)
    let parts = try GivenJob.parts(of: urls)[0]
    let usual = parts.host.split(at: "[]").joined() + (parts.lastPathSegment.map { "-\($0)" } ?? "")
    return (request, try GivenJob.name(name) ?? JobName(like: offered?.name ?? usual))
  }
}

/// A subscription that comes with the program, and that a person may take by its name: contrib/subscriptions.
private struct OfferedSubscription {
  let name: String
  private let bytes: [UInt8]

  /// Those of the installed program, or of the sources that it was built of.
  static let all: [OfferedSubscription] = {
    var found = glob_t()
    defer { globfree(&found) }
    for place in ["../share/spoolrun", "../../../contrib"] {
      let pattern = System.path(ofProgramBeside: "\(place)/subscriptions/*")
      if let pattern, glob(pattern, GLOB_APPEND, nil, &found) == 0 { break }
    }
    return (0..<Int(found.gl_pathc)).compactMap { found.gl_pathv[$0].flatMap { Self(String(cString: $0)) } }
  }()

  private init?(_ path: String) {
    guard let bytes = try? ReplacedFile.read(path, limit: JobText.maximumRequest) else { return nil }
    (name, self.bytes) = (path.split(at: "/").last.map(String.init) ?? path, bytes)
  }

  /// Its first line, a comment.
  var title: String {
    let line = bytes.prefix { $0 != 0x0A }
    return String(decoding: line.drop { $0 == UInt8(ascii: "#") || $0 == 0x20 }, as: UTF8.self)
  }

  /// What it asks for, but for what a person has given instead.
  func request(without given: [(key: JobKey, text: String)]) throws(Defect) -> JobRequest {
    let kept = JobText.without(Set(given.map(\.key.name)), bytes).withUnsafeBytes { JobText($0) }
    if let defect = kept.defect { throw Defect(line: defect.line, reason: "\(name): \(defect.reason)") }
    return kept.request
  }
}
