internal import ArgumentParser
internal import Glibc
internal import Spool
internal import SystemPackage

struct Verify: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Checks payloads against their receipts.",
    discussion: """
      Reads each payload again and compares size and CRC-32 with its receipt in done. Prints a line for each that is missing or has \
      changed, and with -v one for each that is sound. Exit status 1 when one is missing, has changed or cannot be checked.
      """)

  @OptionGroup var spool: SpoolOption

  @Option(name: .shortAndLong, help: "Where the outputs are, if they have been moved. (default: as the receipt says)")
  var directory: String?

  @Flag(name: .shortAndLong, help: "Name sound payloads as well.")
  var verbose = false

  @Argument(help: "Jobs in done, by name, as done/name, or by the path of the receipt. (default: all)")
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

  /// A disk that is not mounted hides nothing of the others.
  private func verdict(_ name: FileName, _ spool: Spool) -> Verdict {
    do throws(SpoolError) { return try check(name, spool) } catch {
      return Verdict(text: "cannot be checked: \(error)")
    }
  }

  private struct Verdict {
    var isSound = false
    /// As its receipt says: nothing but the end of the connection says that it is whole.
    var isUnproven = false
    let text: String
  }

  private func check(_ name: FileName, _ spool: Spool) throws(SpoolError) -> Verdict {
    guard JobName(name) != nil, let job = try spool.job(.done, name) else {
      return Verdict(text: "no such receipt in done")
    }
    guard let receipt = job.journal.receipt, let verified = job.journal.verified,
      let output = OutputPath(receipt.output)
    else {
      return Verdict(text: "no receipt: the job file says neither `verified:` nor `done:`")
    }
    let root = try OutputRoot(directory ?? receipt.directory, spool: spool)
    guard let status = try root.status(output), status.isRegular else {
      return Verdict(text: "missing: \(escaped(output.text))")
    }
    let existing = try root.place(output).openExisting()
    guard existing.status.size == verified.size else {
      return Verdict(
        text: "changed: \(escaped(output.text)): expected \(verified.size) bytes, found \(existing.status.size)")
    }
    let found = try existing.reading.run().checksum
    guard found == verified.checksum else {
      return Verdict(text: "changed: \(escaped(output.text)): expected crc32 \(verified.checksum), found \(found)")
    }
    let unproven = receipt.unproven.map { " unproven=\(escaped($0))" } ?? ""
    return Verdict(
      isSound: true, isUnproven: !unproven.isEmpty,
      text: "sound: \(escaped(output.text)) size=\(verified.size) crc32=\(found)\(unproven)")
  }
}
