internal import Spool
internal import SpoolLists

/// What to say of the lines of a list that cannot be used.
struct ListComplaint {
  /// What messages call the list.
  let title: String
  let problems: ListProblems

  /// A line for each reason: `list:3,7: reason`.
  private var reasons: [String] {
    var reasons: [(text: String, lines: [Int])] = []
    for defect in problems.named {
      let lines = defect.line.map { [$0] } ?? []
      if let known = reasons.firstIndex(where: { $0.text == defect.reason }) {
        reasons[known].lines += lines
      } else {
        reasons.append((defect.reason, lines))
      }
    }
    return reasons.map { text, lines in
      "\(title)\(lines.isEmpty ? "" : ":")\(lines.map { "\($0)" }.joined(separator: ",")): \(text)"
    }
  }

  /// Says why the list is refused.
  /// - Parameters:
  ///   - leavesOut: whether what cannot be used is left out: then nothing is left.
  ///   - consequence: what comes of it, such as `nothing is dropped`.
  func refuse(leavesOut: Bool, _ consequence: String) {
    if problems.count == 1 {
      return Terminal.error("\(reasons[0]);\(leavesOut ? "" : " --ignore-unknown leaves it out;") \(consequence)")
    }
    for reason in reasons { Terminal.error(reason) }
    let more = problems.count > problems.named.count ? ", these and more" : ""
    let advice = leavesOut ? "nothing else is in it" : "--ignore-unknown leaves them out"
    Terminal.error("\(title): \(problems.count) entries cannot be used\(more); \(advice); \(consequence)")
  }

  /// Says that a list was taken without what cannot be used.
  func tellWhatIsLeftOut() {
    guard let first = reasons.first else { return }
    let count = problems.count
    Terminal.error(
      "\(first); \(count == 1 ? "this is left out" : "this and others are left out, \(count) in all")", .warning)
  }
}
