internal import Spool

/// Reads payloads again and compares them with their receipts. On any thread.
struct PayloadReader: Sendable {
  let spool: Spool
  /// Where the payloads are; nil for the directory that each receipt names.
  let directory: String?
  /// Whether sound payloads have a line as well.
  let isVerbose: Bool
  let progress: VerifyProgress

  /// An error, such as a disk that is not mounted, concerns only this job.
  func answer(_ listed: ListedReceipt) -> VerifyAnswer {
    guard let name = listed.name else { return VerifyAnswer(unreadable: listed) }
    var isSound = false
    var isWanted = true
    let text: String
    do {
      let found = try DoneReceipt.read(listed, spool)
      if let flaw = try flaw(found) {
        text = flaw
      } else {
        isSound = true
        isWanted = isVerbose || found.receipt.unproven != nil
        text = sound(found)
      }
    } catch let missing as DoneReceipt.Missing {
      if missing.hasMoved { return VerifyAnswer() }
      text = missing.text
    } catch {
      text = "cannot be checked: \(error)"
    }
    return VerifyAnswer(isGood: isSound, line: isWanted ? "\(name.display): \(text)" : nil)
  }

  /// What is wrong with the payload; nil if nothing is.
  private func flaw(_ found: DoneReceipt) throws(SpoolError) -> String? {
    var tally = progress.begin(found.verified.size)
    defer { progress.end(tally) }
    let root = try OutputRoot(directory ?? found.receipt.directory, spool: spool)
    switch try root.check(found.receipt, found.verified, note: { progress.read($0, &tally) }) {
    case .missing: return "missing: \(escaped(found.output.text))"
    case .changed(let mismatch): return "changed: \(escaped(found.output.text)): \(mismatch.text)"
    case .present, .sound: return nil
    }
  }

  private func sound(_ found: DoneReceipt) -> String {
    let digests = Fields().with(found.verified.digests).text
    let unproven = found.receipt.unproven.map { " unproven=\(escaped($0))" } ?? ""
    return "sound: \(escaped(found.output.text)) size=\(found.verified.size) \(digests)\(unproven)"
  }
}
