internal import ArgumentParser
internal import Spool
internal import Transfer

/// The keys of a job that a command has options for.
protocol JobKeySelection {
  static var keys: [JobKey] { get }
  static func help(_ key: JobKey) -> String
}

extension JobKeySelection { static func help(_ key: JobKey) -> String { key.help } }

enum AllJobKeys: JobKeySelection { static let keys = JobKey.ofJobs }

/// The options of a command that set a job's keys, one for each row of ``JobKey/all`` that it selects.
///
/// ArgumentParser finds the options of a type among the children of its mirror and has the type decode their values. So
/// this type makes its mirror, and decodes, by the table of keys.
struct JobOptions<Keys: JobKeySelection>: ParsableArguments, CustomReflectable {
  /// What was given, in the order of the table.
  private(set) var given: [(key: JobKey, text: String)] = []

  init() {}

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: OptionName.self)
    for key in Keys.keys {
      let name = OptionName(stringValue: key.name)
      switch key.option {
      case .argument: break
      case .flag: if try container.decode(Flag<Bool>.self, forKey: name).wrappedValue { given.append((key, "yes")) }
      case .value:
        let texts = try container.decode(Option<[String]>.self, forKey: name).wrappedValue
        // As with other programs' options, the last one counts.
        given += (key.isRepeatable ? texts : texts.suffix(1)).map { (key, $0) }
      }
    }
  }

  /// The value of the last option of this name; nil where there was none.
  func text(_ name: String) -> String? { given.last { $0.key.name == name }?.text }

  var customMirror: Mirror {
    Mirror(self, children: Keys.keys.compactMap { key in Self.option(key).map { (key.name, $0) } })
  }

  private static func option(_ key: JobKey) -> Any? {
    switch key.option {
    case .argument: nil
    case .flag: Flag(wrappedValue: false, name: .customLong(key.name), help: ArgumentHelp(Keys.help(key)))
    case .value(let short, let also):
      Option<[String]>(
        wrappedValue: [],
        name: NameSpecification(
          (short.map { [.customShort($0)] } ?? []) + (also.map { [.customLong($0)] } ?? []) + [.customLong(key.name)]),
        help: ArgumentHelp(Keys.help(key), valueName: key.valueName),
        completion: key.choices.isEmpty ? nil : .list(key.choices))
    }
  }
}

private struct OptionName: CodingKey {
  let stringValue: String
  var intValue: Int? { nil }

  init(stringValue: String) { self.stringValue = stringValue }
  init?(intValue: Int) { nil }
}

/// What `add` and `subscribe` check before they open the spool. In `validate()`, its errors would come before that of
/// an unknown option.
enum GivenJob {
  static func checked<Checked>(by command: String, _ check: () throws -> Checked) throws -> Checked {
    try Libcurl.loadOrExit()
    do { return try check() } catch let error as ValidationError {
      throw ExitStatus.refusal(error.message, by: command)
    } catch let defect as Defect {
      throw ExitStatus.refusal(defect.reason, by: command)
    }
  }

  static func refuse(expired request: JobRequest) throws {
    if let expires = request.expires, expires <= .now() { throw ValidationError("--expires: \(expires) is past") }
  }

  static func parts(of urls: [String]) throws -> [URLParts] {
    do { return try urls.map { try URLParts($0) } } catch let problem as URLProblem {
      throw ValidationError("url: \(problem.reason)")
    }
  }

  /// The name that `--name` gives; nil without it.
  static func name(_ option: String?) throws -> JobName? {
    guard let option else { return nil }
    let name = FileName(RawArguments.bytes(of: [option])[0])
    if let job = JobName(name) { return job }
    throw ValidationError("--name: \(JobName.defect(of: name) ?? "its name starts with a dot")")
  }
}

/// The seconds in an option's value; nil without one.
/// - Parameter range: what `isAllowed` allows, in words.
func seconds(
  of option: String, _ value: String?, _ range: String = "from 1s to 365d, such as 2h",
  isAllowed: (Int) -> Bool = { _ in true }
) throws -> Int? {
  guard let value else { return nil }
  if let seconds = duration(value), isAllowed(seconds) { return seconds }
  throw ValidationError("\(option) must be a time \(range)")
}

extension JobRequest {
  /// What the arguments of a command ask for.
  /// - Parameter base: what is asked for besides.
  init(_ base: JobRequest = JobRequest(), urls: [String], given: [(key: JobKey, text: String)]) throws(Defect) {
    self = base
    for (key, text) in urls.map({ (JobKey.url, $0) }) + given { try set(key, text) }
  }

  /// The job's text, read as a worker reads it.
  func readBack() throws(Defect) -> JobRequest {
    let parsed = Array(text.utf8).withUnsafeBytes { JobText($0) }
    if let defect = parsed.defect { throw defect }
    return parsed.request
  }
}
