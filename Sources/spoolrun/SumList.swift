internal import ArgumentParser
internal import Glibc
internal import Spool

/// The digests that `verify --sums` prints.
enum SumFormat: String, ExpressibleByArgument, CaseIterable, Sendable {
  case sha256, sha512, sha1, md5, sfv

  init?(argument: String) { self.init(rawValue: argument == "crc32" ? "sfv" : argument) }

  var algorithm: DigestAlgorithm { DigestAlgorithm(rawValue: rawValue) ?? .crc32 }
}

/// Makes lines for sha256sum(1), cksfv(1) and the like from receipts. Reads no payload. On any thread.
struct SumList: Sendable {
  let spool: Spool
  /// The directory that all paths are relative to; nil for `files`, and then other payloads have absolute paths.
  let directory: String?
  let format: SumFormat
  let style: SumLine.Style
  /// A terminal gets no bytes that control it. A file gets names as they are.
  private let isForTerminal = isatty(STDOUT_FILENO) == 1

  func answer(_ listed: ListedReceipt) -> VerifyAnswer {
    guard let name = listed.name else { return VerifyAnswer(unreadable: listed) }
    do {
      let found = try DoneReceipt.read(listed, spool)
      guard let digest = found.verified.digests[format.algorithm] else {
        return problem(name, "its receipt has no \(format.algorithm.rawValue)")
      }
      guard let line = SumLine(digest, path(found), style) else {
        return problem(name, "the list cannot have a path with a line break")
      }
      return VerifyAnswer(line: shown(line.text))
    } catch let missing as DoneReceipt.Missing {
      if missing.hasMoved { return VerifyAnswer() }
      return problem(name, missing.text)
    } catch {
      return problem(name, "cannot be read: \(error)")
    }
  }

  private func path(_ found: DoneReceipt) -> String {
    guard directory == nil, let place = found.receipt.directory else { return found.output.text }
    return "\(place)/\(found.output.text)"
  }

  private func shown(_ line: String) -> String {
    let controls = isForTerminal && line.unicodeScalars.contains { $0 != "\\" && isUnsafeForDisplay($0) }
    return controls ? escaped(line) : line
  }

  private func problem(_ name: FileName, _ text: String) -> VerifyAnswer {
    VerifyAnswer(isGood: false, problem: "\(name.display): \(text)")
  }
}
