internal import ArgumentParser
internal import Glibc
internal import Spool
internal import SystemPackage

struct Verify: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Checks downloaded files against their receipts.",
    discussion: """
      Reads each downloaded file again and compares its size and digests with the receipt in done. Prints a line for \
      each file that is missing or has changed; with -v also for those that are sound. Exits with status 1 if a file \
      is missing, has changed or cannot be checked.
      """)

  @OptionGroup var spool: SpoolOption

  @Option(name: .shortAndLong, help: "Where the files are, if they have been moved. (default: as the receipt says)")
  var directory: String?

  @Flag(name: .shortAndLong, help: "Print sound files as well.")
  var verbose = false

  @Argument(help: "Jobs in done, as name, done/name or the path of the receipt. (default: all)")
  var names: [String] = []

  func run() throws {
    let spool = try spool.open()
    var isSound = true
    do throws(SpoolError) {
      let named = try RawArguments.bytes(of: names).map { (bytes) throws(SpoolError) in
        let (directory, name) = try spool.split(bytes)
        return directory == .done ? name : FileName(bytes)
      }
      for name in try named.isEmpty ? spool.list(.done).sorted(by: { $0.display < $1.display }) : named {
        let verdict = verdict(name, spool)
        if verdict.isSound {
          if verbose || verdict.isUnproven { Terminal.print("\(name.display): \(verdict.text)") }
        } else {
          isSound = false
          Terminal.print("\(name.display): \(verdict.text)")
        }
      }
    } catch {
      Terminal.error("\(error)")
      throw ExitStatus(error).code
    }
    if !isSound { throw ExitStatus.givenUp.code }
  }

  /// An error, such as a disk that is not mounted, concerns only this job: the others are checked.
  private func verdict(_ name: FileName, _ spool: Spool) -> Verdict {
    do throws(SpoolError) { return try check(name, spool) } catch {
      return Verdict(text: "cannot be checked: \(error)")
    }
  }

  private struct Verdict {
    var isSound = false
    /// Its receipt says `unproven=length`: only the end of the connection showed that the payload is complete.
    var isUnproven = false
    let text: String
  }

  private func check(_ name: FileName, _ spool: Spool) throws(SpoolError) -> Verdict {
    guard JobName(name) != nil, let job = try spool.job(.done, name) else {
      return Verdict(text: "no such receipt in done")
    }
    guard let receipt = job.journal.publication.receipt, let verified = job.journal.publication.verified,
      let output = OutputPath(receipt.output)
    else {
      return Verdict(text: "no receipt: the job file says neither `verified:` nor `done:`")
    }
    switch try OutputRoot(directory ?? receipt.directory, spool: spool).check(receipt, verified) {
    case .missing: return Verdict(text: "missing: \(escaped(output.text))")
    case .changed(let mismatch): return Verdict(text: "changed: \(escaped(output.text)): \(mismatch.text)")
    case .present, .sound: break
    }
    let digests = Fields().with(verified.digests).text
    let unproven = receipt.unproven.map { " unproven=\(escaped($0))" } ?? ""
    return Verdict(
      isSound: true, isUnproven: !unproven.isEmpty,
      text: "sound: \(escaped(output.text)) size=\(verified.size) \(digests)\(unproven)")
  }
}
