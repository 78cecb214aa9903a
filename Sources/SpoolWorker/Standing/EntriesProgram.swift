internal import Spool
internal import SystemPackage

/// Runs `spoolrun-entries`, which reads a list in a process of its own and prints its entries.
struct EntriesProgram {
  /// Seconds until it is killed. It limits its own CPU time to less.
  private static let timeLimit = 120
  /// Bytes that it may print, as it limits them itself.
  private static let outputLimit = 64 << 20

  let path: String?
  let stop: ChildStop

  /// What can be read of the list in `file`.
  /// - Parameter name: the list's own; nil if its URL ends in none.
  /// - Throws: `bad-entries` with what is wrong with the list; ``SpoolError``.
  func read(_ file: ScratchFile, _ format: EntryFormat?, name: String?, in spool: Spool) async throws -> ReadList {
    let output = try ScratchFile(spool)
    // The program opens them by their names.
    defer { withExtendedLifetime((file, output)) {} }
    guard let path else { throw Failure(.badEntries, "spoolrun-entries cannot be found: /proc is not mounted") }
    let outcome: ChildProcess.Outcome
    do throws(Errno) {
      let options = format.map { ["--entries", $0.rawValue] } ?? []
      let title = name.map { ["--name", $0] } ?? []
      outcome = try await ChildProcess(
        arguments: [path] + options + title + [file.path, output.path],
        // A list that is too much for it is no crash to be looked into.
        environment: [.init("SWIFT_BACKTRACE", "enable=no")], seconds: Self.timeLimit, stop: stop,
        kept: spool.descriptor(for: output.path)
      ).run()
    } catch {
      throw Failure(.badEntries, "\(escaped(path)) cannot be run: \(error)")
    }
    switch outcome.end {
    case .exited(0): break
    case .stopped: throw JobStop.cancelled
    // EX_DATAERR: the program's message is about the list.
    case .exited(65): throw Failure(.badEntries, Self.message(outcome.output))
    case .signalled:
      throw Failure(
        .badEntries,
        "spoolrun-entries was \(outcome.description): the list takes more than 256 MiB of memory or 30 s of CPU")
    default: throw Failure(.badEntries, "spoolrun-entries: \(outcome.reason)")
    }
    let text = try output.contents(limit: Self.outputLimit)
    do throws(Defect) {
      return try await runBlocking { () throws(Defect) in try ReadList(text) }
    } catch {
      throw Failure(.badEntries, "spoolrun-entries printed something else than entries: \(error)")
    }
  }

  /// The program has escaped what it quotes, but may have been taken over.
  private static func message(_ output: [UInt8]) -> String {
    let text = String(decoding: output.prefix(400), as: UTF8.self)
    return String(text.unicodeScalars.map { $0 != "\\" && isUnsafeForDisplay($0) ? " " : Character($0) }).trimmedBlanks
  }
}

extension String {
  fileprivate var trimmedBlanks: String { String(trimmed(self[...])) }
}
