internal import Spool

/// What to say of a gesture's outcome.
struct GestureReport {
  /// Without control characters.
  let text: String
  /// Whether the job is not as the gesture would make it.
  let isProblem: Bool

  /// - Parameter name: the job, as the person named it.
  init(_ outcome: GestureOutcome, of gesture: Gesture, name: [UInt8]) {
    let name = escaped(name)
    switch outcome {
    case .moved(let from, let to): (text, isProblem) = ("\(from.display) -> \(to.display)", false)
    case .due(let place): (text, isProblem) = ("\(place.display): next attempt now", false)
    case .removed(let place): (text, isProblem) = ("\(place.display) removed", false)
    case .unchanged(let place): (text, isProblem) = ("\(place.display): nothing to \(gesture.command)", false)
    case .ambiguous(let places):
      let all = places.map(\.display).joined(separator: ", ")
      (text, isProblem) = ("\(name): several jobs have this name: \(all); name the directory as well", true)
    case .taken(let place, let other):
      (text, isProblem) = ("\(place.display) cannot be moved: \(other.display) has the same name", true)
    case .directory(let place):
      (text, isProblem) = ("\(place.display) is a directory, not a job: remove it with rm -r", true)
    case .notFound(let elsewhere):
      let place = elsewhere.map { "\(name): nothing to \(gesture.command): it is \($0.display)" }
      (text, isProblem) = (place ?? "\(name): no such job", true)
    case .restless(let place): (text, isProblem) = ("\(place.display) keeps moving: try again", true)
    }
  }
}
