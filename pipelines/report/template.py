"""The page's HTML, as a Jinja template: in a module, so that every installation has it."""

TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ name }}: report</title>
<style>
  body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 1120px; margin: 2rem auto;
         padding: 0 1rem; }
  h1 { font-size: 1.5rem; margin-bottom: .5rem; }
  h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem; border-bottom: 1px solid #ddd; padding-bottom: .2rem; }
  .verdict { padding: .7rem 1rem; border-left: 5px solid; background: #f6f6f6; }
  .verdict.won { border-color: #009e73; }
  .verdict.not-won { border-color: #d55e00; }
  .verdict p { margin: .2rem 0; }
  .verdict p:first-child { font-weight: 600; font-size: 1.05rem; }
  .wide { overflow-x: auto; }
  table { border-collapse: collapse; }
  th, td { padding: .25rem .8rem .25rem 0; text-align: left; vertical-align: top; }
  th { font-weight: 600; border-bottom: 1px solid #bbb; }
  caption, summary { text-align: left; font-weight: 600; padding: .2rem 0; }
  caption { padding-top: 1.2rem; }
  table.numbers td { font-variant-numeric: tabular-nums; }
  table.numbers tr.group td { border-top: 1px solid #ddd; }
  table.numbers td:first-child { white-space: nowrap; }
  td.strong, td.better, td.worse { font-weight: 600; }
  td.better { color: #00704f; }
  td.worse { color: #b34700; }
  .facts td:first-child { color: #666; white-space: nowrap; }
  .curves { display: flex; flex-wrap: wrap; gap: 8px 1%; }
  .curves img { width: 49%; min-width: 340px; }
  .pair { display: flex; gap: 16px; flex-wrap: wrap; margin: 0 0 1.4rem; }
  figure { margin: 0; max-width: 520px; flex: 1 1 320px; }
  figure img { width: 100%; border: 1px solid #ddd; }
  figcaption, .note { color: #555; font-size: .9rem; }
  .key { font-weight: 600; }
</style>
</head>
<body>
{% macro cells(table) %}
<div class="wide"><table class="{{ 'numbers' if table.columns else 'facts' }}">
  {% if table.title and not table.is_folded %}
  <caption>{{ table.title }}</caption>
  {% endif %}
  {% if table.columns %}
  <tr>{% for column in table.columns %}<th>{{ column }}</th>{% endfor %}</tr>
  {% endif %}
  {% for row in table.rows %}
  {% set number = loop.index0 %}
  <tr{% if row[0] %} class="group"{% endif %}>
    {%- for cell in row -%}
    {% set mark = table.marks.get((number, loop.index0)) %}
    <td{% if mark %} class="{{ mark }}"{% endif %}>{{ cell }}</td>
    {%- endfor -%}
  </tr>
  {% endfor %}
</table></div>
{% if table.note %}
<p class="note">{{ table.note }}</p>
{% endif %}
{% endmacro %}
{% macro show(table) %}
{% if table.is_folded %}
<details><summary>{{ table.title }}</summary>
{{ cells(table) }}
</details>
{% else %}
{{ cells(table) }}
{% endif %}
{% endmacro %}
<h1>{{ name }}</h1>
<div class="verdict {{ 'won' if result.has_won else 'not-won' }}">
  <p>{{ verdict }}</p>
  {% for remark in remarks %}
  <p>{{ remark }}</p>
  {% endfor %}
</div>

<h2>Result on val</h2>
{% for table in of_task.result %}
{{ show(table) }}
{% endfor %}

<h2>Curves</h2>
{% if curves %}
<div class="curves">
  {% for curve in curves %}
  <img src="{{ curve.image }}" alt="{{ curve.name }}">
  {% endfor %}
</div>
<p class="note">Dashed: the {{ result.baseline_name }}{% if result.was_tuned %}; dotted: as shipped{% endif %}.</p>
{% else %}
<p>No update has been logged.</p>
{% endif %}

<h2>Before and after</h2>
<p class="note">{{ pictures_note }}</p>
{% if pictures %}
<p class="note"><span class="key" style="color: {{ colours.right }}">green</span>: {{ of_task.pictures_key }};
<span class="key" style="color: {{ colours.wrong }}">orange</span>: fits none;
<span class="key" style="color: {{ colours.missed }}">blue, dotted</span>: a label without a fitting box;
<span class="key" style="color: {{ colours.ignored }}">grey</span>: an ignore region (hatched), a box on one.
These are parts of your images: mind who gets this page.</p>
{% endif %}
{% for picture in pictures %}
<div class="pair">
  <figure><img src="{{ picture.before }}" alt="before">
    <figcaption>before, whole image: {{ picture.counts_before }}
    <br>{{ picture.name }}, {{ picture.window }}</figcaption></figure>
  <figure><img src="{{ picture.after }}" alt="after">
    <figcaption>after, whole image: {{ picture.counts_after }}</figcaption></figure>
</div>
{% endfor %}

{% if of_task.data %}
<h2>Data</h2>
{% for table in of_task.data %}
{{ show(table) }}
{% endfor %}
{% endif %}

<h2>What was run</h2>
{{ show(run) }}

<h2>Time and memory</h2>
{% if cost.rows %}
{{ show(cost) }}
{% else %}
<p>No update has been logged.</p>
{% endif %}

<h2>Setting</h2>
<p class="note">One definition for training scale, evaluation and the exported model.</p>
{{ show(setting) }}
{% if of_task.trials %}
{{ show(of_task.trials) }}
{% endif %}

<h2>Export</h2>
<p>{{ parity }}</p>
</body>
</html>
"""
