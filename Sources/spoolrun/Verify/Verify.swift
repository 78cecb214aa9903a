internal import ArgumentParser
internal import Glibc
internal import Spool
internal import SpoolStatus

struct Verify: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify", abstract: "Checks downloaded files against their receipts.",
    usage: "spoolrun verify [<options>] [<names> ...]",
    discussion: """
      Reads each downloaded file again and compares its size and all digests that the receipt has. Prints a \
      line for each file that is missing or has changed; with -v also for those that are sound. Exits with status 1 \
      if a file is missing, has changed or cannot be checked.

      With --sums, reads no file and prints the receipts' digests as sha256sum, cksfv and the like do, with paths \
      relative to the output directory. Exits with status 1 if a receipt does not have the digest.
      """)

  @OptionGroup var spool: SpoolOption

  @Option(name: .shortAndLong, help: "Where the files are, if they have been moved. (default: as the receipt says)")
  var directory: String?

  @Option(
    name: [.customShort("j", allowingJoined: true), .long],
    help: ArgumentHelp("Read at most N files in parallel. (default: the number of processors)", valueName: "n"))
  var jobs: Int?

  @Option(help: ArgumentHelp("Print digests of this kind, and read no file.", valueName: "format")) var sums: SumFormat?

  @Flag(help: "Print the list of the pieces of one file, as `add --pieces` takes it.") var pieces = false

  @Flag(help: "Have the worker fetch again what is missing or has changed: where pieces are known, only these.")
  var refetch = false

  @Flag(help: "With --sums, print lines as sha256sum --tag does.") var tag = false

  @Flag(name: .shortAndLong, help: "Print sound files as well.") var verbose = false

  @Argument(
    help: ArgumentHelp(
      "Jobs in done, as name, its beginning, a pattern, done/name or the path of the receipt; files or directories of "
        + "gets. (default: all)"), completion: JobNameCompletion.kind) var names: [String] = []

  func validate() throws {
    if let jobs, !(1...1000).contains(jobs) { throw ValidationError("--jobs must be from 1 to 1000") }
    if pieces, names.count != 1 || sums != nil { throw ValidationError("--pieces is for one job, and without --sums") }
    if refetch, pieces || sums != nil || directory != nil {
      throw ValidationError("--refetch is without --pieces, --sums and --directory")
    }
    if tag, sums == nil { throw ValidationError("--tag belongs to --sums") }
  }

  func run() throws {
    try NamedSpool.refuse(among: names, of: "verify", self.spool)
    let use = refetch ? SpoolUse.changing : .reading
    let (spools, fetched) =
      sums == nil && !pieces
      ? try spool.openAllAndFetched(names, for: use)
      : (try spool.openAll(for: use, having: .jobs), names.map { _ in [] })
    let files = fetched.flatMap(\.self)
    let others = zip(names, fetched).filter { $1.isEmpty }.map(\.0)
    let (lists, strangers) = try names.isEmpty || !others.isEmpty ? receipts(in: spools, others) : ([], [])
    if let stranger = strangers.first {
      let more = strangers.count > 1 ? ", nor of \(strangers.count - 1) others" : ""
      Terminal.error("\(escaped(stranger)): nothing of this name was fetched here\(more)")
    }
    let places =
      files.compactMap(\.done.receipt.directory) + lists.filter { $0.receipts.count > 0 }.map(\.spool.location)
    let progress = VerifyProgress()
    progress.count { $0.files = lists.reduce(files.count) { $0 + $1.receipts.count } }
    var found = check(files, lists, progress)
    let flaws = [(found.replaced, "replaced"), (found.delivered, "delivered"), (progress.now.bad, "not")]
    let sound = flaws.reduce(progress.now.ended) { $0 - $1.0 }
    let rest = flaws.filter { $0.0 > 0 }.map { ", \($0) \($1)" }.joined()
    if sums == nil { Terminal.say("\(sound) sound\(rest)\(Self.told(places))") }
    if refetch {
      let away = found.takeAway()
      for place in away {
        Terminal.error("\(escaped(place)): none of these files is there: if their disk is mounted, name them")
      }
      if !found.again.isEmpty { try FetchedFiles.refetch(found.again) }
      if !away.isEmpty { found.isGood = false }
    }
    if found.isGood, strangers.isEmpty { return }
    if found.isDamaged, !refetch {
      Terminal.error("`spoolrun verify --refetch` has it fetched again, and replaced once it is right", .info)
    }
    throw ExitStatus.givenUp.code
  }

  /// Where the files were looked for that a person has not named.
  private static func told(_ places: [String]) -> String {
    var seen: Set<ExactText> = []
    let shown = places.filter { seen.insert($0.exact).inserted }.map { escaped($0) }
    return shown.isEmpty ? "" : ": \(shown.prefix(3).joined(separator: ", "))\(shown.count > 3 ? ", \u{2026}" : "")"
  }

  private func check(
    _ files: [GetRecords.Fetched], _ lists: [(spool: Spool, receipts: ReceiptList)], _ progress: VerifyProgress
  ) -> Found {
    var (rest, found, picture) = (files[...], Found(), VerifyPicture())
    let fetchedFiles = FetchedFiles(directory: directory, isVerbose: verbose, refetches: refetch, progress: progress)
    report(calls({ rest.popFirst() }, progress, fetchedFiles.answer), progress, &picture, &found)
    for (spool, receipts) in lists {
      report(calls({ receipts.next() }, progress, answers(spool, receipts, progress)), progress, &picture, &found)
    }
    return found
  }

  /// - Returns: also those names by which the person's gets have nothing.
  private func receipts(
    in spools: [Spool], _ names: [String]
  ) throws -> ([(spool: Spool, receipts: ReceiptList)], strangers: [String]) {
    if spools.isEmpty { return ([], names) }
    return try ExitStatus.reporting("the receipts") {
      let isAboutGets = spool.spool == nil && SpoolOpening.isAboutGets
      var strangers: [String] = []
      var wanted: [[FileName]?] = spools.map { _ in names.isEmpty ? nil : [] }
      for (text, jobs) in zip(RawArguments.bytes(of: names), try MeantJobs.by(names, in: spools, [.done])) {
        if try isAboutGets && !jobs.isAnyThere() {
          strangers.append(String(decoding: text, as: UTF8.self))
        } else {
          wanted[jobs.index]? += jobs.directory ?? .done == .done ? jobs.names : [FileName(text)]
        }
      }
      let lists = try zip(spools, wanted).filter { $1?.isEmpty != true }.compactMap { spool, names in
        try spool.unlessGone(ReceiptList(spool, named: names)).map { (spool: spool, receipts: $0) }
      }
      return (lists, strangers)
    }
  }

  private func calls<Item: Sendable>(
    _ next: @escaping () -> Item?, _ progress: VerifyProgress, _ answer: @escaping @Sendable (Item) -> VerifyAnswer
  ) -> OrderedCalls<Item, VerifyAnswer> {
    let width = jobs ?? max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    return OrderedCalls(next, width: width) { item in
      let answer = answer(item)
      progress.count { progress in
        if answer.isMoved { progress.files -= 1 } else { progress.ended += 1 }
        if !answer.isGood { progress.bad += 1 }
      }
      return answer
    }
  }

  private func answers(
    _ spool: Spool, _ receipts: ReceiptList, _ progress: VerifyProgress
  ) -> @Sendable (ListedReceipt) -> VerifyAnswer {
    if let sums {
      return SumList(spool: spool, directory: directory, format: sums, style: tag ? .tagged : .plain).answer
    }
    let reader = PayloadReader(
      spool: spool, directory: directory, isVerbose: verbose, refetches: refetch,
      receipts: AllReceipts(spool, named: names.isEmpty ? nil : receipts.places(in: spool)), progress: progress)
    return pieces ? reader.pieces : reader.answer
  }

  private struct Found {
    var isGood = true
    /// Whether a payload is not what its receipt says.
    var isDamaged = false
    /// Payloads that newer jobs have replaced.
    var replaced = 0
    /// Payloads that were delivered, and are not there any more.
    var delivered = 0
    /// The directories where files of gets are.
    var places: Set<ExactText> = []
    var again: [GetRecords.Fetched] = []

    /// Takes those out of ``again`` whose disk may not be mounted: nobody has named them, and no other file is there.
    /// - Returns: their directories.
    mutating func takeAway() -> [String] {
      let away = Set(again.filter { !$0.isNamed }.map(\.directory)).subtracting(places)
      again.removeAll { !$0.isNamed && away.contains($0.directory) }
      return away.sorted().map(\.text)
    }
  }

  private func report<Item>(
    _ calls: OrderedCalls<Item, VerifyAnswer>, _ progress: VerifyProgress, _ picture: inout VerifyPicture,
    _ found: inout Found
  ) {
    var bar = ProgressLine()
    while !calls.isOver {
      for answer in calls.take(within: Int(ProgressLine.interval)) {
        if answer.line != nil || answer.problem != nil { bar.erase() }
        if let line = answer.line { Terminal.print(line) }
        if let problem = answer.problem { Terminal.error(problem) }
        if let again = answer.again { found.again.append(again) }
        if let place = answer.place { found.places.insert(place.exact) }
        if !answer.isGood, !refetch || answer.again == nil { found.isGood = false }
        if answer.isDamaged { found.isDamaged = true }
        if answer.isReplaced { found.replaced += 1 }
        if answer.isDelivered { found.delivered += 1 }
      }
      if sums != nil { continue }
      bar.update { width, look in
        picture.update(progress.now, at: Host.current.milliseconds())
        return picture.line(width: width, look)
      }
    }
    bar.erase()
  }
}
