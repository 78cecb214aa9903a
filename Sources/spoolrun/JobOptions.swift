internal import ArgumentParser
internal import Spool

/// The keys of a job that a command has options for.
protocol JobKeySelection {
  static var keys: [JobKey] { get }
  /// One line of help for an option.
  static func help(_ key: JobKey) -> String
}

extension JobKeySelection {
  static func help(_ key: JobKey) -> String { key.help }
}

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
      case .flag:
        if try container.decode(Flag<Bool>.self, forKey: name).wrappedValue { given.append((key, "yes")) }
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
    case .value(let short):
      Option<[String]>(
        wrappedValue: [],
        name: NameSpecification((short.map { [.customShort($0)] } ?? []) + [.customLong(key.name)]),
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
