internal import ArgumentParser
internal import Glibc
internal import Spool

struct Clean: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clean", abstract: "Removes files that no job needs.", usage: "spoolrun clean [<options>] [<spool>]",
    discussion: """
      Removes data whose job is gone or failed because its output exists, lists in pieces and get's links in roots \
      that no job needs, files in tmp older than 36 hours and records of entries that are gone; with --keep-done \
      also old receipts. Never removes a job or a downloaded file. Lists receipts whose file is missing, \
      but keeps them until they are old, too.

      With --archive, moves old receipts into done/archive, to a directory for each month. verify, report, \
      status NAME and add --new still know them.
      """)

  @Flag(help: "Print what would be removed and change nothing.") var dryRun = false

  @Option(help: ArgumentHelp("Remove receipts older than this, such as 30d. (default: keep all)", valueName: "age"))
  var keepDone: String?

  @Option(
    help: ArgumentHelp("Archive receipts older than this, such as 30d. (default: archive none)", valueName: "age"))
  var archive: String?

  @OptionGroup var spool: SpoolArgument

  func validate() throws {
    for (option, age) in [("--keep-done", keepDone), ("--archive", archive)] {
      guard let age, Self.seconds(age) == nil else { continue }
      throw ValidationError("\(option) needs a number and a unit (s, m, h or d), from 1s to 36525d, such as 30d")
    }
  }

  /// Up to 100 years. Zero is refused, because it would remove all receipts.
  private static func seconds(_ text: String) -> Int64? {
    duration(text, most: 3_155_760_000, needsUnit: true).map { Int64($0) }
  }

  func run() throws {
    umask(0o077)
    var isComplete = true
    let isAboutGets = spool.location == nil && SpoolOpening.isAboutGets
    // First of all, root becomes the person.
    if isAboutGets, PersonalSpool.location != nil { _ = try PersonalSpool.become(ownerOf: nil) }
    let hasFetched = try isAboutGets && !OwnSpools.fetched(into: (try? realPath(".")) ?? "").isEmpty
    let spools = try SpoolOpening.openAll(spool.location, for: .changing, having: .anything, mayBeNone: hasFetched)
    if hasFetched {
      let missing = try OwnSpools.forgetMissing(isDry: dryRun)
      if missing == nil {
        Terminal.error(
          "nothing is forgotten of what gets have fetched: this directory is empty, as without its disk", .info)
      }
      for name in missing ?? [] {
        Terminal.print("\(dryRun ? "would forget" : "forgot") \(escaped(name)): a get has fetched it, and it is gone")
      }
    }
    for spool in spools { try clean(spool, &isComplete) }
    if !isComplete { throw ExitStatus.inputOutput.code }
  }

  private func clean(_ spool: Spool, _ isComplete: inout Bool) throws {
    var areRemoved = true
    var cleanup = Cleanup(spool) { finding in
      guard let obstacle = finding.obstacle else { return Terminal.print(sentence(finding)) }
      areRemoved = false
      Terminal.error("\(finding.place) is left alone: \(obstacle)")
    }
    cleanup.isDry = dryRun
    cleanup.grace = 0
    cleanup.keepDone = keepDone.flatMap(Self.seconds)
    cleanup.archive = archive.flatMap(Self.seconds)
    cleanup.readsJobs = true
    try ExitStatus.reporting(escaped(spool.location)) { _ = try spool.unlessGone(cleanup.run()) }
    isComplete = isComplete && areRemoved
  }

  private func sentence(_ finding: CleanupFinding) -> String {
    let verb = dryRun ? "would remove" : "removed"
    return switch finding.kind {
    case .orphan: "\(verb) \(finding.place): \(finding.bytes) bytes, their job is gone"
    case .unpublished: "\(verb) \(finding.place): \(finding.bytes) bytes, their job failed with output-exists"
    case .root: "\(verb) \(finding.place): the directory that it leads to is gone"
    case .pieces: "\(verb) \(finding.place): no job names this list of pieces"
    case .stale: "\(verb) \(finding.place): older than 36 hours"
    case .record: "\(verb) \(finding.place): the entry that it describes is gone"
    case .receipt: "\(verb) \(finding.place): a receipt older than \(keepDone ?? "")"
    case .archived: "\(dryRun ? "would archive" : "archived") \(receipts(finding.count)) in \(finding.place)"
    case .missing: "\(finding.place): its file is missing: \(finding.output ?? "")"
    case .oldArchive: "\(finding.place): an archive of version 0.2: contrib/unarchive makes receipts of it"
    case .stuck: finding.place
    case .noReceipt: "\(finding.place): no receipt"
    case .stray: "\(finding.place): workers ignore this file: move it to new, or remove it"
    }
  }

  private func receipts(_ count: Int) -> String { count == 1 ? "1 receipt" : "\(count) receipts" }
}
