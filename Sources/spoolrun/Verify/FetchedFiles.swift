internal import Spool
internal import SpoolStatus

/// Compares the files that gets have fetched into a directory with what was noted, where their spools are gone. On any
/// thread.
struct FetchedFiles: Sendable {
  /// Where the files are now; nil for where they were fetched to.
  let directory: String?
  let isVerbose: Bool
  let progress: VerifyProgress

  /// Those that the names of a command line mean, and the names that mean none.
  static func meant(
    by names: [String], among fetched: [GetRecords.Fetched]
  ) -> (files: [GetRecords.Fetched], others: [String]) {
    if names.isEmpty { return (fetched.sorted { $0.done.receipt.output.exact < $1.done.receipt.output.exact }, []) }
    var (files, others): ([GetRecords.Fetched], [String]) = ([], [])
    for name in names {
      let path = name.begins(with: "./") ? String(name.dropFirst(2)) : name
      let found = fetched.filter { $0.done.receipt.output.exact == path.exact }
      if found.isEmpty { others.append(name) } else { files += found }
    }
    return (files, others)
  }

  func answer(_ fetched: GetRecords.Fetched) -> VerifyAnswer {
    let name = escaped(fetched.done.receipt.output)
    let check: PayloadCheck
    do throws(SpoolError) {
      check = try progress.following(fetched.done) { (note) throws(SpoolError) in
        try GetRecords.check(fetched, in: directory, note: note)
      }
    } catch {
      return VerifyAnswer(isGood: false, line: "\(name): cannot be checked: \(error)")
    }
    let flaw: String
    switch check {
    case .missing:
      let advice = directory == nil ? "; `spoolrun clean` here forgets it, `get` gets it again" : ""
      return VerifyAnswer(isGood: false, line: "\(name): missing\(advice)")
    case .changed(let mismatch): flaw = "changed: \(mismatch.text)"
    case .unreadable(let error): flaw = "unreadable: \(error.errno)"
    case .present, .sound:
      return VerifyAnswer(line: isVerbose ? "\(name): sound: \(fetched.facts)" : nil)
    }
    return VerifyAnswer(isGood: false, line: "\(name): \(flaw); `spoolrun get --overwrite` with its URL gets it again")
  }
}

extension GetRecords.Fetched {
  fileprivate var facts: String { "size=\(done.verified.size) \(Fields().with(done.verified.digests).text)" }

  /// Where the file is from, for a person.
  var story: String {
    let time = done.time.map { " \($0)" } ?? ""
    let place = url.map { " from \(escaped($0))" } ?? ""
    return "\(escaped(done.receipt.output)): fetched\(time)\(place); \(facts)"
  }
}
