internal import ArgumentParser
internal import Glibc
internal import Spool

struct Clean: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Removes what no job needs any more.",
    discussion: """
      Data whose job is gone, files in tmp older than 36 hours, records of what is gone, and, only if asked to, old receipts. \
      Never a job, never a payload. Receipts whose payload is missing are named and stay, until they are old as well.
      """)

  @Flag(name: .long, help: "Print what would be removed; change nothing.")
  var dryRun = false

  @Option(
    name: .long, help: ArgumentHelp("Remove receipts older than this, such as 30d. (default: none)", valueName: "age"))
  var keepDone: String?

  @OptionGroup var spool: SpoolArgument

  func validate() throws {
    if let keepDone, Self.seconds(keepDone) == nil {
      throw ValidationError("--keep-done wants a number with s, m, h or d behind it, from 1s to 36525d")
    }
  }

  /// `30d`, `12h`; up to 100 years. Without a unit 30 would be seconds for one and days for another, and 0 all receipts.
  private static func seconds(_ text: String) -> Int64? {
    let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
    guard let unit = text.last.flatMap({ units[$0] }) else { return nil }
    let digits = text.dropLast()
    guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int64(digits),
      (1...3_155_760_000 / unit).contains(number)
    else { return nil }
    return number * unit
  }

  func run() throws {
    umask(0o077)
    let spool = try self.spool.open()
    var options = SweepOptions()
    options.isDry = dryRun
    options.grace = 0
    options.keepDone = keepDone.flatMap(Self.seconds)
    options.readsReceipts = true
    var isComplete = true
    do throws(SpoolError) {
      try spool.sweep(options) { finding in
        guard let obstacle = finding.obstacle else { return Terminal.print(sentence(finding)) }
        isComplete = false
        Terminal.error("\(finding.place) stays: \(obstacle)")
      }
    } catch {
      Terminal.error("\(escaped(spool.location)): \(error)")
      throw ExitStatus(error).code
    }
    if !isComplete { throw ExitStatus.inputOutput.code }
  }

  private func sentence(_ finding: SweepFinding) -> String {
    let verb = dryRun ? "would remove" : "removed"
    return switch finding.kind {
    case .orphan: "\(verb) \(finding.place): \(finding.bytes) bytes of a job that is gone"
    case .stale: "\(verb) \(finding.place): older than 36 hours"
    case .record: "\(verb) \(finding.place): the record of what is gone"
    case .receipt: "\(verb) \(finding.place): a receipt older than \(keepDone ?? "")"
    case .missing: "\(finding.place): its payload is missing: \(finding.output ?? "")"
    case .stuck: "\(finding.place) stays"
    case .noReceipt: "\(finding.place): no receipt"
    case .stray: "\(finding.place): no job that a worker would take: mv it to new, or rm it"
    }
  }
}
